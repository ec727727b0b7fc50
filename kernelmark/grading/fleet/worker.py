"""A worker: a judge process for one device, which grades several jobs at a time and runs as long as its fleet.

Run as `python -m kernelmark.grading.fleet.worker ROOT --slots N`, it reads requests from stdin and writes answers to
stdout. With `--resident PLAN` it waits at a socket for one job of a command (`kernelmark.grading.resident`) and then
ends. Trusted. It imports torch once. The sandboxes of a job start when it arrives, while others are graded. Tests run
at the same time; a kernel that is timed has the device to itself (`harness.judge.timing.device_lock`).
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn

from pydantic import TypeAdapter, ValidationError

from harness.arena import free_deferred
from harness.device import DEVICES
from harness.errors import HarnessError, KernelmarkError, ProblemError, SettingsError
from harness.judge import Grader, Progress
from harness.judge.session import Sessions
from harness.judge.timing.overall import KnownTimes
from harness.judge.torch_import import import_torch
from harness.kinds import DeviceKind, SandboxChoice
from harness.sandbox import Provider, ending
from harness.sandbox.processors import OnProcessors
from harness.verdict import Check, Outcome, Verdict
from kernelmark.grading.fleet.known_times import KnownBaselines
from kernelmark.grading.fleet.messages import (
    AHEAD,
    JobAnswer,
    JobCancel,
    JobProgress,
    JobRequest,
    Message,
    WorkerReady,
)
from kernelmark.grading.fleet.shares import CpuShare, WeightedSemaphore, sandboxes_in
from kernelmark.grading.fleet.watchdog import Watchdog
from kernelmark.grading.resident.standby import Plan, Standby
from kernelmark.grading.setup import PreparedJob, twice
from kernelmark.project.choice import choose_provider, cuda_is_here
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import ReadSettings, Settings

_REQUEST: TypeAdapter[JobRequest | JobCancel] = TypeAdapter(JobRequest | JobCancel)


class Worker:
    """Grades requests in threads, and calls `answer` with each result, from one thread at a time.

    With `one_job` it grades a single job for a command, as the command itself would, with no other job on the device.
    `ahead` are sandboxes that were started before the job was known.
    """

    def __init__(
        self,
        root: Path,
        device: DeviceKind,
        slots: int,
        answer: Callable[[JobAnswer | JobProgress], None],
        watchdog: Watchdog | None = None,
        ahead: Sessions | None = None,
        judges: int = 1,
        known: Path | None = None,
        *,
        one_job: bool = False,
    ) -> None:
        self._one_job, self._ahead = one_job, ahead
        self._device, self._answer = device, answer
        self._settings = ReadSettings(root)
        with contextlib.suppress(SettingsError):  # the first job says so
            self._settings()
        self._watchdog = watchdog or Watchdog()
        self._cpus = None if DEVICES[device].on_host or one_job else CpuShare.of(os.sched_getaffinity(0))
        self._slots, self._threads = threading.Semaphore(slots), ThreadPoolExecutor(slots + AHEAD)
        # A start uses one processor for some seconds. If all started at once, the first would be ready as late as the
        # last.
        cpus = self._cpus.runners if self._cpus is not None else os.sched_getaffinity(0)
        self._starting = threading.Semaphore(max(1, len(cpus) // 2))
        # Compilers hold no slot.
        self._compilers = WeightedSemaphore(len(cpus))
        self._room = WeightedSemaphore(math.inf if one_job else sandboxes_in(DEVICES[device].free_bytes(), judges))
        self._lock = threading.Lock()
        self._jobs, self._graders, self._stopped = set[str](), dict[str, Grader](), False
        self._cancelled, self._watched = set[str](), set[str]()
        self._providers: dict[SandboxChoice, Provider] = {}
        self._baselines = KnownBaselines(known, self._measure)

    def use_own_cpus(self) -> None:
        """Keep this process away from the processors of its runners."""
        if self._cpus is not None:
            os.sched_setaffinity(0, self._cpus.judge)

    def take(self, request: JobRequest) -> None:
        """Start grading a job in a thread."""
        with self._lock:
            self._jobs.add(request.run)
            if request.progress:
                self._watched.add(request.run)
            self._reset_watchdog()
        self._threads.submit(self._run, request)

    def cancel(self, run: str) -> None:
        """End the sandboxes of a job that has not been answered yet. Its answer is then an error."""
        with self._lock:
            if run not in self._jobs:
                return
            self._cancelled.add(run)
            grader = self._graders.get(run)
        if grader is not None:  # in a thread, since ending its containers takes time
            threading.Thread(target=grader.close, daemon=True).start()

    def stop(self) -> None:
        """End the sandboxes of all jobs and wait until they are gone. No more answers are sent."""
        with self._lock:
            self._stopped = True
            self._watchdog.stop()
            graders, ahead = list(self._graders.values()), self._ahead
        with ThreadPoolExecutor(len(graders) + 1) as ending:  # at the same time, since ending containers takes time
            for _ in ending.map(lambda grader: grader.close(), graders):
                pass
        if ahead is not None:
            ahead.close()

    def _run(self, request: JobRequest) -> None:
        try:
            answer = self._grade(request)
        except _Stopped:
            answer = JobAnswer.failed(request.run, HarnessError("it was cancelled"))
        except Exception as error:  # noqa: BLE001 - the failure of one job must not end the others
            answer = JobAnswer.failed(request.run, error)
        with self._lock:
            self._jobs.remove(request.run)
            self._cancelled.discard(request.run)
            self._watched.discard(request.run)
            self._reset_watchdog()
            # Not while other jobs are timed: memory that was just released is slow.
            if not self._jobs and not self._stopped:
                free_deferred(self._device)
            if not self._stopped:
                self._answer(answer)

    def _reset_watchdog(self) -> None:
        """Restart the watchdog's timer if there are jobs, else stop it. The caller holds the lock."""
        if self._jobs and not self._stopped:
            self._watchdog.reset()
        else:
            self._watchdog.stop()

    def _report(self, run: str, step: Progress) -> None:
        with self._lock:
            self._reset_watchdog()
            if run in self._watched and not self._stopped:
                self._answer(JobProgress(run=run, step=step))

    def _grade(self, request: JobRequest) -> JobAnswer:
        settings, job = self._prepare(request)
        if not request.timed:
            return JobAnswer(run=request.run, check=twice(lambda _: self._check(job, request)))
        verdict = self._grade_twice(job, request.run, hidden=request.hidden)
        if request.effort == "screen":
            verdict = self._baselines.compared(settings, job, verdict)
        return JobAnswer(run=request.run, verdict=verdict)

    def _check(self, job: PreparedJob, request: JobRequest) -> Check:
        how = {"only": request.only, "fail_fast": request.fail_fast, "hidden": request.hidden}
        with self._grader(job, request.run, **how) as grader:
            if not self._one_job:
                grader.build(self._compilers.take, triton=True)
            with self._slot(request.run):
                return grader.check()

    def _grade_twice(self, job: PreparedJob, run: str, *, hidden: bool = True) -> Verdict:
        """Grade while other jobs run; then again alone if the harness failed or other jobs may have used the memory."""
        return twice(lambda again: self._grade_once(job, run, alone=again, hidden=hidden))

    def _grade_once(self, job: PreparedJob, run: str, *, alone: bool, hidden: bool) -> Verdict | None:
        """Grade once; None if the submission lacked memory that other jobs may have used."""
        with self._grader(job, run, hidden=hidden) as grader:
            if self._one_job:
                return grader.grade()
            grader.build(self._compilers.take, triton=True)
            with self._room.take(grader.sandboxes):
                with self._starting:
                    grader.start()
                    grader.wait()
                with self._slot(run):
                    verdict = grader.grade(alone=alone)
                    return None if not alone and grader.lacked_memory(verdict) else verdict

    @contextlib.contextmanager
    def _grader(self, job: PreparedJob, run: str, **how: Any) -> Iterator[Grader]:
        """A job's grader. `stop` and `cancel` may close it before the block ends."""
        grader = job.grader(run, self._provider(job.settings), partial(self._report, run), **how)
        with self._lock:
            self._refuse_if_stopped(run)
            if self._ahead is not None:
                grader.adopt(self._ahead)
                self._ahead = None
            self._watchdog.expect(job.problem)
            self._graders[run] = grader
        try:
            yield grader
        except Exception:
            self._refuse_if_stopped(run)  # its sandboxes were ended on purpose, so the error is no failure
            raise
        finally:
            grader.close()
            with self._lock:
                del self._graders[run]

    @contextlib.contextmanager
    def _slot(self, run: str) -> Iterator[None]:
        """Wait for a slot and hold it, unless the job is cancelled meanwhile."""
        with self._slots:
            self._refuse_if_stopped(run)
            yield

    def _refuse_if_stopped(self, run: str) -> None:
        if self._stopped or run in self._cancelled:
            raise _Stopped

    def _provider(self, settings: Settings) -> Provider:
        """The sandbox of these settings, made once: Docker's first use also removes what killed judges left behind."""
        with self._lock:
            known = self._providers.get(settings.sandbox)
            if known is None:
                known = choose_provider(settings)
                if self._cpus is not None:
                    known = OnProcessors(known, {"runner": self._cpus.runners, "launcher": self._cpus.judge})
                self._providers[settings.sandbox] = known
        return known

    def _prepare(self, request: JobRequest) -> tuple[Settings, PreparedJob]:
        """The settings of a request, and its job. A screen runs no baselines in alternation."""
        device = None if request.device == "auto" else request.device
        flags = {"device": device, "sandbox": request.sandbox, "effort": request.effort}
        settings = self._settings().overridden(baselines=request.baselines, **flags)
        path = Path(request.problem)
        problem = find_problem(settings, path if path.is_absolute() else request.problem, request.final)
        if problem.sha256 != request.problem_sha256:
            what = "differs from the problem of this name where the job comes from"
            raise ProblemError(str(problem.directory), what, "use the same version of the project on all machines")
        alternating = settings.model_copy(update={"baselines": ()}) if request.effort == "screen" else settings
        return settings, PreparedJob(alternating, problem, request.submission)

    def _measure(self, baseline: PreparedJob) -> KnownTimes | str:
        verdict = self._grade_twice(baseline, secrets.token_hex(8))
        failed = f"{verdict.outcome.value.replace('_', ' ')}: {verdict.message}"
        return KnownTimes.of(verdict) if verdict.outcome is Outcome.ACCEPTED else failed


def main() -> NoReturn:
    """Answer requests until they end or SIGTERM comes; then end all sandboxes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--judges", type=int, default=1, help="how many workers this device has")
    parser.add_argument("--known", type=Path, help="the folder in which they share the times of baselines")
    parser.add_argument("--cpus", help="the processors to use, such as 0,1,2,3; by default all")
    parser.add_argument("--resident", type=Plan.model_validate_json, help="wait for one job of a command")
    arguments = parser.parse_args()
    if arguments.cpus:
        os.sched_setaffinity(0, map(int, arguments.cpus.split(",")))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches the dispatcher, which decides
    signal.signal(signal.SIGTERM, _end_of_requests)
    if arguments.resident is not None:
        _answer_a_command(arguments.root, arguments.resident)
    else:
        _answer_a_dispatcher(arguments.root, arguments.slots, arguments.judges, arguments.known)
    ending.wait()
    os._exit(0)


def _answer_a_dispatcher(root: Path, slots: int, judges: int, known: Path | None) -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not mix with the answers
    device: DeviceKind = "cuda" if cuda_is_here() else "cpu"
    import_torch()  # before the first job, which would wait for it
    send = partial(_send, answers)
    worker = Worker(root, device, slots, send, judges=judges, known=known)
    worker.use_own_cpus()
    _serve(worker, requests, send, WorkerReady(device=DEVICES[device].facts().device_name, slots=slots))
    if known is not None:  # the other workers of the device end now as well
        shutil.rmtree(known, ignore_errors=True)


def _answer_a_command(root: Path, plan: Plan) -> None:
    standby = Standby(plan)
    connection = None
    with contextlib.suppress(_EndOfRequests, KernelmarkError):
        connection = standby.wait(root)
    if connection is None:
        if standby.sandboxes is not None:
            standby.sandboxes.close()
        return
    send = partial(_send, connection.makefile("wb"))
    worker = Worker(root, plan.device, 1, send, ahead=standby.sandboxes, one_job=True)
    _serve(worker, connection.makefile("rb"), send, WorkerReady(device="", slots=1))


def _serve(worker: Worker, requests: Iterable[bytes], send: Callable[[WorkerReady], None], ready: WorkerReady) -> None:
    """Answer requests until they end, then end all sandboxes."""
    try:
        send(ready)
        for line in requests:
            request = _REQUEST.validate_json(line)
            if isinstance(request, JobCancel):
                worker.cancel(request.cancelled)
            else:
                worker.take(request)
    except (_EndOfRequests, OSError, ValidationError):  # a killed dispatcher may leave an incomplete line
        pass
    worker.stop()


def _send(to: BinaryIO, message: Message) -> None:
    with contextlib.suppress(OSError):  # the reader is gone, so the requests end as well
        to.write(message.line())
        to.flush()


class _Stopped(Exception):
    """The job was cancelled, or the worker is ending."""


class _EndOfRequests(Exception):
    """SIGTERM was received: no more requests are read."""


def _end_of_requests(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _EndOfRequests


if __name__ == "__main__":
    main()
