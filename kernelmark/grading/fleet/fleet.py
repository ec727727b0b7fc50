"""A fleet grades many submissions on all available devices. Trusted.

This process is the dispatcher: it reads the jobs, sends them to workers, and records the results. Nothing else records.
Each job has exactly one result: the dispatcher chooses its run id before it sends it, and ignores late answers of a
worker that it has given up.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from harness.errors import UsageError
from harness.kinds import Effort, SandboxChoice
from kernelmark.grading.fleet.dispatch import Dispatch
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.judges import Judges
from kernelmark.grading.fleet.reuse import Answers, Reuse, machine_of, on_disk, refuse_unknown
from kernelmark.project.problems import refuse_without_project
from kernelmark.project.project import Project, settings_for
from kernelmark.project.settings import DeviceChoice
from kernelmark.record.allowance import InFlight

_AT_ONCE = 256  # concurrent calls of `agrade` on several machines: their capacity is unknown until they have started


@dataclass(frozen=True)
class FleetStatus:
    """What a fleet has done so far, and what it is doing."""

    done: int
    in_flight: int
    seconds: float
    by_device: dict[str, int]
    """Results by the name of the device."""
    lost: int = 0
    """How often a job's worker ended before its answer."""
    retried: int = 0
    """How many of those jobs were sent to another worker."""

    @property
    def a_minute(self) -> float:
        """Results a minute."""
        return 60 * self.done / self.seconds if self.seconds else 0.0


class Fleet:
    """Workers that run while its `with` block does: `with kernelmark.Fleet() as fleet: fleet.grade_many(jobs)`."""

    def __init__(
        self,
        where: str = "auto",
        *,
        device: DeviceChoice = "auto",
        device_name: str | None = None,
        sandbox: SandboxChoice = "auto",
        slots: int | None = None,
        devices: int | None = None,
        project: Project | None = None,
    ) -> None:
        """
        Args:
            where: "auto": this machine's GPUs, or its CPU if it has none. Otherwise the address of a fleet of several
                machines: HOST:PORT, or the file that `kernelmark fleet start` wrote. This machine must be one of them.
            device: "cpu", "cuda", or "auto": as for `kernelmark.grade`.
            device_name: of several machines, use the GPUs of this name only, such as "H100": as `kernelmark fleet
                status` shows it.
            sandbox: "docker", "bwrap", or "auto"; a fleet does not grade without isolation.
            slots: how many jobs each device grades at a time; None: this depends on the number of processors.
            devices: how many of this machine's devices to use; None: all.
            project: as for `kernelmark.grade`, but required to exist. Of several machines, each uses the project in
                which it joined the fleet.

        Raises:
            UsageError: an argument is not valid, there is no project, the sandbox does not isolate, or this machine
                lacks a GPU, ray or the token.
            SandboxError: no sandbox can be used here.
        """
        if where == "auto" and device_name is not None:
            raise UsageError("Fleet", "device_name chooses among several machines", "use CUDA_VISIBLE_DEVICES on one")
        if where != "auto" and devices is not None:
            raise UsageError("Fleet", "devices counts those of one machine", "use device_name for several")
        if slots is not None and slots < 1:
            raise UsageError("Fleet", f"slots={slots} is not a number of jobs", "use 1 or more")
        if devices is not None and devices < 1:
            raise UsageError("Fleet", f"devices={devices} is not a number of devices", "use 1 or more, or leave it out")
        self._settings = settings_for(project, device=device, sandbox=sandbox)
        if project is None:
            refuse_without_project(self._settings)
        self._judges = Judges(self._settings, where, slots=slots, devices=devices, device_name=device_name)
        self._pool, self._in_flight = self._judges.pool, InFlight()
        self._kept: dict[Reuse, tuple[Answers, bytes]] = {"run": (Answers(), b"")}
        self._threads = ThreadPoolExecutor(self._pool.capacity or _AT_ONCE)
        self._begun = time.monotonic()
        self._started, self._closed, self._starting = False, False, threading.Lock()
        self._process = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the workers and wait until all are ready. Without this call, the first job starts them.

        Raises:
            UsageError: the fleet was closed, was started before a fork, does not include this machine, or does not
                require a token.
            HarnessError: a worker did not start.
        """
        with self._starting:
            self._refuse_if_closed()
            if self._started:
                return
            try:
                self._judges.start()
            except BaseException:
                if not self._judges.are_here:
                    self.close()
                raise
            self._started, self._begun, self._process = True, time.monotonic(), os.getpid()

    def close(self) -> None:
        """End the workers and all sandboxes. Jobs that are still being graded get no verdict."""
        self._closed = True
        self._threads.shutdown(wait=False)
        self._judges.close()

    @property
    def capacity(self) -> int:
        """How many jobs it accepts at a time, including those whose sandboxes are still starting."""
        return self._pool.capacity

    def status(self) -> FleetStatus:
        """What the fleet has done since it started."""
        done, in_flight, by_device = self._pool.counts()
        seconds = time.monotonic() - self._begun
        return FleetStatus(done, in_flight, seconds, by_device, self._pool.lost, self._pool.retried)

    def grade_many(
        self,
        jobs: Iterable[Job],
        *,
        effort: Effort = "quick",
        baselines: Sequence[str] | None = None,
        record: bool = False,
        reuse: Reuse = True,
    ) -> Iterator[JobResult]:
        """Grade jobs, and yield each result as soon as it is ready, in any order.

        A thread reads the jobs, and never more than the workers have room for, so the iterable may be endless. An
        error with one job becomes the `error` of its result. If the caller stops reading the results, the gradings
        that are still running are ended.

        Args:
            effort: as for `kernelmark.grade`.
            baselines: as for `kernelmark.grade`; None: the project's setting. With the effort "screen" each baseline
                is timed once on each device, and speedups refer to that time.
            record: archive each source, append the verdict to the project's ledger and rewrite its board.
            reuse: which earlier verdicts of the same source are copied instead of grading it again. True: those of
                this call; "run": those of all calls of this fleet with "run"; "disk": also those of earlier programs
                of this user on this machine, with the same device, sandbox and versions; False: none.

        Raises:
            UsageError: an argument is not valid, or the fleet was closed.
            HarnessError: a worker did not start.
            Exception: whatever the iterable raises, after the results of the jobs before it.
        """
        batch = self._batch(effort, baselines, record=record, reuse=reuse)
        self.start()
        return batch.run(jobs)

    def check_many(self, jobs: Iterable[Job], *, reuse: Reuse = True) -> Iterator[JobResult]:
        """Build and test jobs, without times: results have a `check` in place of a verdict. Otherwise as `grade_many`.

        Raises:
            UsageError, HarnessError, Exception: as for `grade_many`.
        """
        batch = self._batch(timed=False, reuse=reuse)
        self.start()
        return batch.run(jobs)

    async def agrade_many(
        self,
        jobs: Iterable[Job] | AsyncIterable[Job],
        *,
        effort: Effort = "quick",
        baselines: Sequence[str] | None = None,
        record: bool = False,
        reuse: Reuse = True,
    ) -> AsyncIterator[JobResult]:
        """As `grade_many`, but for `async for`. The jobs may also come from an async iterable."""
        source = _Pulled(jobs, asyncio.get_running_loop()) if isinstance(jobs, AsyncIterable) else None
        batch = self._batch(effort, baselines, record=record, reuse=reuse)
        await asyncio.to_thread(self.start)
        results = batch.run(source or jobs)  # type: ignore[arg-type]  # one of them is an iterable
        try:
            while (result := await asyncio.to_thread(next, results, None)) is not None:
                yield result
        finally:  # also if this task is cancelled, while a thread is still waiting for the next result
            batch.stop()
            if source is not None:
                source.stop()

    async def agrade(
        self,
        job: Job,
        *,
        effort: Effort = "quick",
        baselines: Sequence[str] | None = None,
        record: bool = False,
        reuse: Reuse = False,
    ) -> JobResult:
        """Grade one job, for programs with many concurrent tasks that each wait for one result.

        Calls beyond the fleet's capacity wait. Cancelling the call ends the grading and its sandboxes. Otherwise as
        `grade_many` with one job. Two concurrent calls with the same source are two gradings.
        """
        return await self._one(job, self._batch(effort, baselines, record=record, reuse=reuse))

    async def acheck(self, job: Job, *, reuse: Reuse = False) -> JobResult:
        """Build and test one job, as `check_many`. Otherwise as `agrade`."""
        return await self._one(job, self._batch(timed=False, reuse=reuse))

    async def _one(self, job: Job, batch: Dispatch) -> JobResult:
        def graded() -> JobResult | None:
            self.start()
            return next(batch.run([job]), None)

        try:
            result = await asyncio.get_running_loop().run_in_executor(self._threads, graded)
        finally:
            batch.stop()
        assert result is not None  # only a batch that was stopped has none
        return result

    def _refuse_if_closed(self) -> None:
        if self._started and os.getpid() != self._process:  # the threads that read the answers are not in a fork
            raise UsageError("Fleet", "was started by the process that this one was forked from", "make another here")
        if self._closed:
            raise UsageError("Fleet", "is closed", "grade inside its `with` block, or make another one")

    def _batch(
        self,
        effort: Effort | None = None,
        baselines: Sequence[str] | None = (),
        *,
        record: bool = False,
        timed: bool = True,
        reuse: Reuse,
    ) -> Dispatch:
        self._refuse_if_closed()
        if isinstance(baselines, str):
            raise UsageError("baselines", f"{baselines!r} is a string", "give a list of names")
        refuse_unknown(reuse)
        names = self._settings.baselines if baselines is None else tuple(baselines)
        settings = self._settings.overridden(effort=effort, sandbox=self._judges.sandbox)
        if reuse == "disk" and (not self._judges.are_here or record):
            what = '"disk" is for what one machine grades without a record'
            raise UsageError("reuse", what, 'use "run", or True')
        if reuse == "disk" and reuse not in self._kept:
            self._kept[reuse] = on_disk(settings), machine_of(settings)
        answers, machine = (Answers(), b"") if reuse is True else self._kept.get(reuse, (None, b""))
        return Dispatch(
            self._pool, settings, names, record=record, timed=timed, answers=answers, machine=machine,
            in_flight=self._in_flight,
        )  # fmt: skip


class _Pulled:
    """Iterates over the jobs of an async iterable from a thread other than that of its event loop."""

    def __init__(self, jobs: AsyncIterable[Job], loop: asyncio.AbstractEventLoop) -> None:
        self._source, self._loop = aiter(jobs), loop
        self._stopped = False
        self._task: asyncio.Task[object] | None = None

    def __iter__(self) -> Iterator[Job]:
        return self

    def __next__(self) -> Job:
        job = asyncio.run_coroutine_threadsafe(self._following(), self._loop).result()
        if job is None:
            raise StopIteration
        return job

    def stop(self) -> None:
        """Stop waiting for the next job. Must be called in the event loop's thread."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    async def _following(self) -> Job | None:
        if self._stopped:
            return None
        self._task = asyncio.current_task()
        try:
            return await anext(self._source, None)
        finally:
            self._task = None
