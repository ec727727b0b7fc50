"""A worker: a judge process for one device, which grades several jobs at a time and lives as long as its fleet.

Called as `python -m kernelmark.grading.fleet.worker ROOT --slots N`; requests come on stdin, answers go to stdout. With
`--resident PLAN` it waits for one job of a command at a socket (`kernelmark.grading.resident`), and ends with it.
Trusted. torch is imported once. A job's sandboxes start as soon as it arrives, while others are graded. Tests run side
by side; whatever is timed has the device to itself (`harness.judge.timing.device_lock`).
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
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn

from pydantic import TypeAdapter, ValidationError

from harness.arena import free_deferred
from harness.device import DEVICES
from harness.errors import HarnessError, KernelmarkError, ProblemError
from harness.judge import Grader, Progress
from harness.judge.session import Sessions
from harness.judge.timing.overall import KnownTimes, known_speedups, no_baseline
from harness.judge.torch_import import import_torch
from harness.kinds import DeviceKind
from harness.sandbox import Provider, ending
from harness.sandbox.processors import OnProcessors
from harness.submission import Submission
from harness.verdict import Check, Outcome, Verdict
from kernelmark.grading.fleet.known_times import once
from kernelmark.grading.fleet.messages import (
    AHEAD,
    JobAnswer,
    JobCancel,
    JobProgress,
    JobRequest,
    Message,
    WorkerReady,
)
from kernelmark.grading.fleet.shares import Room, Share, sandboxes_in
from kernelmark.grading.fleet.watchdog import Watchdog
from kernelmark.grading.resident.standby import Plan, Standby
from kernelmark.grading.setup import PreparedJob, twice
from kernelmark.project.choice import choose_provider, cuda_is_here
from kernelmark.project.problems import find_baselines, find_problem
from kernelmark.project.settings import SandboxChoice, Settings

_ASKED: TypeAdapter[JobRequest | JobCancel] = TypeAdapter(JobRequest | JobCancel)


class Worker:
    """Grades requests in threads, which call `answer` with each result, one thread at a time.

    `one_job`: it serves one command, and grades a single job as the command itself would, with nothing else on the
    device. `ahead` are sandboxes that were started before the job was known.
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
        self._root, self._device, self._answer = root, device, answer
        self._watchdog = watchdog or Watchdog()
        self._cpus = None if DEVICES[device].on_host or one_job else Share.of(os.sched_getaffinity(0))
        self._slots, self._threads = threading.Semaphore(slots), ThreadPoolExecutor(slots + AHEAD)
        # A start takes one processor for some seconds: if all began at once, the first would be up as late as the last.
        cpus = self._cpus.runners if self._cpus is not None else os.sched_getaffinity(0)
        self._starting = threading.Semaphore(max(1, len(cpus) // 2))
        # As many compilers at a time. They wait for nothing else, and have no place among those that are graded.
        self._compilers = Room(len(cpus))
        self._room = Room(math.inf if one_job else sandboxes_in(DEVICES[device].free_bytes(), judges))
        self._lock = threading.Lock()
        self._jobs, self._graders, self._stopped = set[str](), dict[str, Grader](), False
        self._cancelled, self._watched = set[str](), set[str]()
        self._providers: dict[SandboxChoice, Provider] = {}
        self._known: dict[tuple[str, str, DeviceKind], Future[KnownTimes | str]] = {}
        self._shared = known

    def use_own_cpus(self) -> None:
        """Keep this process off the processors that its runners use."""
        if self._cpus is not None:
            os.sched_setaffinity(0, self._cpus.judge)

    def take(self, request: JobRequest) -> None:
        """Start grading a job in a thread."""
        with self._lock:
            self._jobs.add(request.run)
            if request.progress:
                self._watched.add(request.run)
            self._reset_watchdog()
        self._threads.submit(self._work, request)

    def cancel(self, run: str) -> None:
        """End the sandboxes of a job that has not been answered. Its answer is then an error."""
        with self._lock:
            if run not in self._jobs:
                return
            self._cancelled.add(run)
            grader = self._graders.get(run)
        if grader is not None:  # in a thread, since ending its containers takes time
            threading.Thread(target=grader.close, daemon=True).start()

    def stop(self) -> None:
        """End the sandboxes of all jobs and wait until they are gone. Nobody waits for the answers any more."""
        with self._lock:
            self._stopped = True
            self._watchdog.stop()
            graders, ahead = list(self._graders.values()), self._ahead
        with ThreadPoolExecutor(len(graders) + 1) as ending:  # at the same time, since ending containers takes time
            for _ in ending.map(lambda grader: grader.close(), graders):
                pass
        if ahead is not None:
            ahead.close()

    def _work(self, request: JobRequest) -> None:
        try:
            answer = self._graded(request)
        except _Stopped:
            answer = JobAnswer.failed(request.run, HarnessError("it was cancelled"))
        except Exception as error:  # noqa: BLE001 - the failure of one job must not end the others
            answer = JobAnswer.failed(request.run, error)
        with self._lock:
            self._jobs.remove(request.run)
            self._cancelled.discard(request.run)
            self._watched.discard(request.run)
            self._reset_watchdog()
            # Not while others are timed: memory that was just released is slow.
            if not self._jobs and not self._stopped:
                free_deferred(self._device)
            if not self._stopped:
                self._answer(answer)

    def _reset_watchdog(self) -> None:
        """Restart the watchdog's timer while there are jobs, else stop it. The caller holds the lock."""
        if self._jobs and not self._stopped:
            self._watchdog.reset()
        else:
            self._watchdog.stop()

    def _progressed(self, run: str, step: Progress) -> None:
        with self._lock:
            self._reset_watchdog()
            if run in self._watched and not self._stopped:
                self._answer(JobProgress(run=run, step=step))

    def _graded(self, request: JobRequest) -> JobAnswer:
        settings, job = self._prepared(request)
        if not request.timed:
            return JobAnswer(run=request.run, check=twice(lambda _: self._checked(job, request)))
        verdict = self._verdict(job, request.run, hidden=request.hidden)
        if request.effort == "screen":
            verdict = self._compared(settings, job, verdict)
        return JobAnswer(run=request.run, verdict=verdict)

    def _compared(self, settings: Settings, job: PreparedJob, verdict: Verdict) -> Verdict:
        """A screen's verdict with its speedups over the known times of baselines, and a doubt for each without one."""
        automatic = settings.model_copy(update={"effort": "default"})
        found_baselines = find_baselines(automatic, job.problem, job.device)
        baselines = {job.problem.baseline_label(baseline.stem): baseline for baseline in found_baselines}
        found = dict[str, object]({"requested_baselines": tuple(baselines)})
        if verdict.outcome is Outcome.ACCEPTED:
            known = {name: self._known_time(job, baseline) for name, baseline in baselines.items()}
            times = [measured for measured in known.values() if isinstance(measured, KnownTimes)]
            speedups = tuple(known_speedups(verdict, times))
            missing = known.keys() - {speedup.baseline for speedup in speedups}
            doubts = (no_baseline(name, _why(known[name], verdict)) for name in known if name in missing)
            found |= {"speedups": speedups, "doubts": (*verdict.doubts, *doubts)}
        return verdict.model_copy(update=found)

    def _checked(self, job: PreparedJob, request: JobRequest) -> Check:
        how = {"only": request.only, "fail_fast": request.fail_fast, "hidden": request.hidden}
        with self._grader(job, request.run, **how) as grader:
            if not self._one_job:
                grader.build(self._compilers.take, triton=True)
            with self._turn(request.run):
                return grader.check()

    def _verdict(self, job: PreparedJob, run: str, *, hidden: bool = True) -> Verdict:
        """Grade among other jobs; and again alone if the harness failed, or if other jobs may have taken the memory."""
        return twice(lambda again: self._once(job, run, alone=again, hidden=hidden))

    def _once(self, job: PreparedJob, run: str, *, alone: bool, hidden: bool) -> Verdict | None:
        """Grade once; None if the submission lacked memory that other jobs may have had."""
        with self._grader(job, run, hidden=hidden) as grader:
            if self._one_job:
                return grader.grade()
            grader.build(self._compilers.take, triton=True)
            with self._room.take(grader.sandboxes):
                with self._starting:
                    grader.start()
                    grader.wait()
                with self._turn(run):
                    verdict = grader.grade(alone=alone)
                    lacked = grader.memory_was_short or _lacked_memory(verdict)
                    return None if lacked and not alone else verdict

    @contextlib.contextmanager
    def _grader(self, job: PreparedJob, run: str, **how: Any) -> Iterator[Grader]:
        """A job's grader. `stop` and `cancel` may close it before the block ends."""
        grader = job.grader(run, self._provider(job.settings), partial(self._progressed, run), **how)
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
            self._refuse_if_stopped(run)  # its sandboxes were ended: whatever follows from that is no failure
            raise
        finally:
            grader.close()
            with self._lock:
                del self._graders[run]

    @contextlib.contextmanager
    def _turn(self, run: str) -> Iterator[None]:
        """Hold one of the slots. A job that is cancelled while it waits for one starts no sandbox."""
        with self._slots:
            self._refuse_if_stopped(run)
            yield

    def _refuse_if_stopped(self, run: str) -> None:
        if self._stopped or run in self._cancelled:
            raise _Stopped

    def _provider(self, settings: Settings) -> Provider:
        """The sandbox of these settings, made once: Docker's first use also removes what killed judges left."""
        with self._lock:
            known = self._providers.get(settings.sandbox)
            if known is None:
                known = choose_provider(settings)
                if self._cpus is not None:
                    known = OnProcessors(known, {"runner": self._cpus.runners, "launcher": self._cpus.judge})
                self._providers[settings.sandbox] = known
        return known

    def _prepared(self, request: JobRequest) -> tuple[Settings, PreparedJob]:
        """The settings with the requested baselines, and the job. A screen alternates with no baseline."""
        device = None if request.device == "auto" else request.device
        flags = {"device": device, "sandbox": request.sandbox, "effort": request.effort}
        settings = Settings.load(self._root, baselines=request.baselines, **flags)
        path = Path(request.problem)
        problem = find_problem(settings, path if path.is_absolute() else request.problem, request.final)
        if problem.sha256 != request.problem_sha256:
            what = "differs from the problem of this name where the job comes from"
            raise ProblemError(str(problem.directory), what, "use the same version of the project on all machines")
        alternating = settings.model_copy(update={"baselines": ()}) if request.effort == "screen" else settings
        return settings, PreparedJob(alternating, problem, request.submission)

    def _known_time(self, job: PreparedJob, baseline: Submission) -> KnownTimes | str:
        """The times of a baseline on this device, measured once in the life of its workers; or why there are none."""
        if job.problem.of_baseline(baseline.stem) is not job.problem:
            return "it computes something else, and is only timed in alternation with a submission"
        key, mine = (job.problem.sha256, baseline.sha256, job.device), Future[KnownTimes | str]()
        with self._lock:
            known = self._known.setdefault(key, mine)
        if known is mine:  # no other job has asked before
            try:
                measure = partial(self._measured, PreparedJob(job.settings, job.problem, baseline))
                mine.set_result(once(self._shared, ".".join(key), measure))
            except BaseException as error:
                mine.set_result(f"could not be timed: {error}")
                with self._lock:
                    del self._known[key]  # the failure was ours: the next job tries again
                if not isinstance(error, HarnessError):
                    raise
        return known.result()

    def _measured(self, baseline: PreparedJob) -> KnownTimes | str:
        verdict = self._verdict(baseline, secrets.token_hex(8))
        failed = f"{verdict.outcome.value.replace('_', ' ')}: {verdict.message}"
        return KnownTimes.of(verdict) if verdict.outcome is Outcome.ACCEPTED else failed


def _why(known: KnownTimes | str, verdict: Verdict) -> str:
    """Why there is no speedup over a baseline with these times."""
    if isinstance(known, str) or known.timing == verdict.timing:
        return known if isinstance(known, str) else "it was not timed in the same case"
    return f"its time is one of {known.timing}, and the submission's one of {verdict.timing}"


def _lacked_memory(verdict: Verdict) -> bool:
    """Whether a submission failed on a GPU as it would if others had its memory.

    What the submission prints counts as evidence: all that it could gain by a lie is to be graded again.
    """
    if verdict.environment.device_kind != "cuda" or verdict.outcome is Outcome.ACCEPTED:
        return False
    said = f"{verdict.message} {verdict.traceback} {verdict.log}".lower()
    return verdict.outcome is Outcome.MEMORY_LIMIT or "out of memory" in said or "alloc_failed" in said


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the dispatcher gets it, too, and decides
    signal.signal(signal.SIGTERM, _end_of_requests)
    if arguments.resident is not None:
        _answer_a_command(arguments.root, arguments.resident)
    else:
        _answer_a_dispatcher(arguments.root, arguments.slots, arguments.judges, arguments.known)
    ending.wait()
    os._exit(0)


def _answer_a_dispatcher(root: Path, slots: int, judges: int, known: Path | None) -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing else is printed between the answers
    device: DeviceKind = "cuda" if cuda_is_here() else "cpu"
    import_torch()  # now, so that the first job need not wait for it
    send = partial(_send, answers)
    worker = Worker(root, device, slots, send, judges=judges, known=known)
    worker.use_own_cpus()
    _answer(worker, requests, send, WorkerReady(device=DEVICES[device].facts().device_name, slots=slots))
    if known is not None:  # the device's other workers end now, too
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
    _answer(worker, connection.makefile("rb"), send, WorkerReady(device="", slots=1))


def _answer(worker: Worker, requests: Iterable[bytes], send: Callable[[WorkerReady], None], ready: WorkerReady) -> None:
    """Answer requests until they end, then end all sandboxes."""
    try:
        send(ready)
        for line in requests:
            asked = _ASKED.validate_json(line)
            if isinstance(asked, JobCancel):
                worker.cancel(asked.cancelled)
            else:
                worker.take(asked)
    except (_EndOfRequests, OSError, ValidationError):  # a dispatcher that is killed may leave an incomplete line
        pass
    worker.stop()


def _send(to: BinaryIO, message: Message) -> None:
    with contextlib.suppress(OSError):  # the reader has gone, so the requests end, too
        to.write(message.line())
        to.flush()


class _Stopped(Exception):
    """The job was cancelled, or the worker is ending."""


class _EndOfRequests(Exception):
    """SIGTERM came: no more requests are read."""


def _end_of_requests(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _EndOfRequests


if __name__ == "__main__":
    main()
