"""Workers of a fleet that grade nothing: a test decides what becomes of each job, and when."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import HarnessError
from harness.judge import Progress
from harness.judge.setup import ignore
from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.grading.fleet.dispatch import Dispatch
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, OnStep, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.grading.fleet.reuse import Answers
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import InFlight
from tests.verdicts import accepted, as_check

T = TypeVar("T")
Act = Callable[[JobRequest], JobAnswer | WorkerLost | None]
LOST = WorkerLost("a worker ended")
PATIENCE_S = 60.0  # for what takes milliseconds, on a machine that is busy with other tests


def request(submission: Submission, run: str = "0" * 16, **changes: Any) -> JobRequest:
    """One to grade a submission to `double` quickly, on the CPU."""
    fields = {"problem_sha256": "0" * 64, "effort": "quick", "baselines": (), "device": "cpu", "sandbox": "bwrap"}
    return JobRequest.model_validate({"run": run, "problem": "double", "submission": submission, **fields, **changes})


def verdict(request: JobRequest) -> Verdict:
    """An accepted one, as a worker gives it."""
    given = request.submission
    return accepted(
        submission=given, problem=Path(request.problem).name, problem_sha256=request.problem_sha256, run=request.run,
        modes=("graphs",), device_kind="cpu", sandbox=request.sandbox, effort=request.effort,
    )  # fmt: skip


def answered(request: JobRequest) -> JobAnswer:
    """A verdict, or a check if that was asked for."""
    made = verdict(request)
    if request.timed:
        return JobAnswer(run=request.run, verdict=made)
    return JobAnswer(run=request.run, check=as_check(made))


def held(request: JobRequest) -> None:
    """Neither answer nor be lost until the test says so."""


class FakeWorker:
    """A worker that does with each job what `act` says: answer, be lost, or hold it (None)."""

    def __init__(self, act: Act = answered, *, slots: int = 1, name: str = "CPU", gpu: str = "") -> None:
        self.act, self.slots, self.device, self.gpu = act, slots, name, gpu
        self.handed: list[JobRequest] = []
        self.cancelled: list[str] = []
        self.closed = False
        self._waiting: dict[bytes, Future[JobAnswer]] = {}
        self._watching: dict[str, OnStep] = {}
        self._changed = threading.Condition()

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def submit(self, request: JobRequest, on_step: OnStep = ignore) -> Future[JobAnswer]:
        future: Future[JobAnswer] = Future()
        with self._changed:
            self.handed.append(request)
            self._watching[request.run] = on_step
            self._waiting[request.submission.source] = future
            self._changed.notify_all()
        if self.closed:
            self.end(request, WorkerLost("it was closed"))
        elif (what := self.act(request)) is not None:
            self.end(request, what)
        return future

    def cancel(self, run: str) -> None:
        """Answer that it was cancelled, as a worker does."""
        self.cancelled.append(run)
        for request in self.handed:
            if request.run == run and request.submission.source in self._waiting:
                self.end(request, JobAnswer.failed(run, HarnessError("it was cancelled")))

    def close(self) -> None:
        self.closed = True
        for request in self.handed:
            if request.submission.source in self._waiting:
                self.end(request, WorkerLost("it was closed"))

    def end(self, request: JobRequest, what: JobAnswer | WorkerLost) -> None:
        """What becomes of a job that it has."""
        with self._changed:
            future = self._waiting.pop(request.submission.source)
        if isinstance(what, WorkerLost):
            future.set_exception(what)
        else:
            future.set_result(what)

    def step(self, request: JobRequest, step: Progress) -> None:
        """Report a step of a job that it has."""
        assert request.progress
        self._watching[request.run](step)

    def answer(self, *requests: JobRequest) -> None:
        """Answer jobs that it has."""
        for request in requests:
            self.end(request, answered(request))

    def has(self, count: int) -> list[JobRequest]:
        """Waits until it has been given so many jobs, and makes sure that there are no more."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.handed) >= count, PATIENCE_S), self.handed
        time.sleep(0.1)
        assert len(self.handed) == count
        return self.handed


def later(call: Callable[..., T], *arguments: object) -> Future[T]:
    """What a call returns or raises, in a thread that no test waits for: one that fails does not hang."""
    ended: Future[T] = Future()

    def run() -> None:
        try:
            ended.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001 - it belongs to the test's thread
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return ended


def soon(call: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """What a call returns or raises; one that hangs fails the test."""
    return later(call).result(within_s)


def until(true: Callable[[], object]) -> None:
    """Wait for this; the test fails where it does not come."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def job(number: int, **options: object) -> Job:
    return Job(problem="double", submission=f"# {number}\n", key=number, **options)  # type: ignore[arg-type]


def batch(
    *workers: FakeWorker,
    record: bool = False,
    timed: bool = True,
    plan: WorkerPool | None = None,
    in_flight: InFlight | None = None,
) -> Dispatch:
    plan = plan or WorkerPool(workers)
    settings = Settings.load(sandbox="bwrap", effort="quick")
    return Dispatch(
        plan, settings, ("none",), record=record, timed=timed, in_flight=in_flight, answers=Answers()
    )  # fmt: skip


def graded(worker: FakeWorker, jobs: Iterable[Job], **how: bool) -> list[JobResult]:
    return soon(lambda: list(batch(worker, **how).run(jobs)))


def keys(results: Iterable[JobResult]) -> list[object]:
    return [result.job.key for result in results]


def lost_times(times: int) -> tuple[Act, Counter[bytes]]:
    """Be lost so many times with each job, then answer."""
    tried: Counter[bytes] = Counter()

    def act(request: JobRequest) -> JobAnswer | WorkerLost:
        tried[request.submission.source] += 1
        return LOST if tried[request.submission.source] <= times else answered(request)

    return act, tried
