"""Hands the jobs of one call to workers and collects what becomes of them. Trusted; the only one that records."""

from __future__ import annotations

import math
import queue
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace

from harness.errors import HarnessError, JobTimeoutError, KernelmarkError, UsageError
from harness.files.outside import real
from harness.submission import Submission
from harness.verdict import RUN_ID, Verdict
from kernelmark.grading import recorder
from kernelmark.grading.fleet.job import Job, JobResult, prepared
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.grading.fleet.reuse import Answers, key_of
from kernelmark.grading.recorder import Remark, admit, usual_s
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import InFlight
from kernelmark.record.publishing import Publisher
from leaderboard.standings.usage import Use

_TRIES = 3  # a job whose worker was lost is handed over at most twice more
_WAIT_S = 3600.0  # for an event, at most; a longer wait is in parts


@dataclass(frozen=True)
class _Taken:
    """A job, as it was read, and the moment at which it was taken."""

    job: Job
    submission: Submission
    at: float

    @property
    def due(self) -> float:
        """When it is not waited for any more."""
        return math.inf if self.job.timeout is None else self.at + self.job.timeout

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.at


@dataclass
class _Work:
    """A source that is being graded, for the job that came with it first and its duplicates."""

    key: str
    prepared: PreparedJob
    request: JobRequest
    remark: Remark | None
    first: _Taken
    waiting: list[_Taken]
    """The jobs that it is graded for: the first, unless it has timed out, and duplicates."""
    tries: int = 1
    use: Use | None = None
    """What is reserved of its author's limits a day."""


@dataclass(frozen=True)
class _Done:
    work: _Work
    answer: Future[JobAnswer]
    device: str


class _End:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Dispatch:
    """One call of `grade_many`."""

    def __init__(
        self,
        pool: WorkerPool,
        settings: Settings,
        baselines: tuple[str, ...],
        *,
        record: bool,
        timed: bool = True,
        answers: Answers | None = None,
        machine: bytes = b"",
        in_flight: InFlight | None = None,
    ) -> None:
        """`answers`: those that an equal source is given again; None: each job is graded. `machine`: what is in their
        keys besides the job.
        """
        self._timed, self._answers, self._machine = timed, answers, machine
        self._in_flight = in_flight or InFlight()
        self._pool, self._settings, self._baselines, self._record = pool, settings, baselines, record
        self._publisher = Publisher(settings)
        self._events: queue.SimpleQueue[Job | _End | _Done] = queue.SimpleQueue()
        self._capacity = max(1, pool.capacity)  # while all workers are lost, a job waits for the first
        self._room = threading.Semaphore(self._capacity)
        self._closed = False
        self._working: dict[str, _Work] = {}

    def run(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Yield the results as they come; what the iterable raises comes after those of the jobs before it."""
        threading.Thread(target=self._pull, args=(iter(jobs),), daemon=True).start()
        end: _End | None = None
        try:
            while end is None or self._working:
                event = self._next()
                if self._closed:
                    return
                if isinstance(event, _End):
                    end = event
                    continue
                for result in self._results(event):
                    yield result
                    self._room.release(1 + self._growth())
            if end.error is not None:
                raise end.error
        finally:
            self._closed = True
            self._room.release()
            for work in list(self._working.values()):
                self._give_up(work)
            self._publisher.close()

    def stop(self) -> None:
        """Let `run` end now, although it may be waiting for a result in another thread."""
        self._closed = True
        self._room.release()
        self._events.put(_End())

    def _next(self) -> Job | _End | _Done | None:
        """What has happened; None: a job has timed out, or nothing for an hour."""
        due = min((taken.due for work in self._working.values() for taken in work.waiting), default=math.inf)
        left_s = min(due - time.monotonic(), _WAIT_S)
        if left_s <= 0:
            return None
        try:
            return self._events.get(timeout=left_s)
        except queue.Empty:
            return None

    def _results(self, event: Job | _Done | None) -> Iterator[JobResult]:
        if event is None:
            return self._timed_out()
        return self._begin(event) if isinstance(event, Job) else self._end(event)

    def _timed_out(self) -> Iterator[JobResult]:
        """The results of the jobs that have; what is graded for no other job is given up."""
        now = time.monotonic()
        for work in list(self._working.values()):
            late = [taken for taken in work.waiting if taken.due <= now]
            work.waiting = [taken for taken in work.waiting if taken.due > now]
            if not work.waiting:
                self._give_up(work)
            for taken in late:
                error = JobTimeoutError(f"the job has not ended within its timeout of {taken.job.timeout:g} s")
                yield JobResult(job=taken.job, error=error, seconds=taken.seconds, tries=work.tries)

    def _give_up(self, work: _Work) -> None:
        """End what nobody waits for any more; it is not recorded."""
        del self._working[work.key]
        self._pool.cancel(work.request.run)
        with self._in_flight.ending(work.use):
            pass

    def _growth(self) -> int:
        """How many more jobs there is room for since workers came."""
        more = max(0, self._pool.capacity - self._capacity)
        self._capacity += more
        return more

    def _pull(self, jobs: Iterator[Job]) -> None:
        try:
            while True:
                self._room.acquire()
                if self._closed:
                    return
                job = next(jobs)
                if not isinstance(job, Job):
                    raise UsageError("jobs", f"has a {type(job).__name__}", "give objects of the type kernelmark.Job")
                self._events.put(job)
        except StopIteration:
            self._events.put(_End())
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller's thread
            self._events.put(_End(error))

    def _begin(self, job: Job) -> Iterator[JobResult]:
        """Hand a job over; yields its result if there is one already."""
        begun = time.monotonic()
        try:
            own = prepared(self._settings, job)
            remark = admit(own, exempt=True) if self._record else None  # `_admit` asks for the limits
            if recorded := self._recorded(own, job):
                yield JobResult(job=job, verdict=recorded, seconds=time.monotonic() - begun)
                return
            key, taken = self._key(own), _Taken(job, own.submission, begun)
            if key in self._working:
                self._working[key].waiting.append(taken)
            elif self._answers is not None and (known := self._answers.get(key)):
                yield self._copied(known.answer, known.device, taken)
            else:
                work = _Work(key, own, self._request(own, job), remark, taken, [taken])
                self._admit(work)
                self._working[key] = work
        except KernelmarkError as error:
            yield JobResult(job=job, error=error, seconds=time.monotonic() - begun)

    def _admit(self, work: _Work) -> None:
        """Hand it over, if its author is within the limits a day, jobs in flight included."""
        own = work.prepared
        if self._record:
            work.use = self._in_flight.take(self._settings, own.submission.author, lambda: usual_s(own))
        try:
            self._hand_over(work)
        except BaseException:
            with self._in_flight.ending(work.use):
                raise

    def _recorded(self, own: PreparedJob, job: Job) -> Verdict | None:
        """The verdict that the ledger has of the job's run, if this is to be recorded."""
        if job.run is None:
            return None
        if not re.fullmatch(RUN_ID, job.run):
            raise UsageError("run", f"{job.run!r} is not a run id", "give 16 hexadecimal digits")
        found = recorder.recorded(own, job.run) if self._record else None
        if found is not None and found.submission.sha256 != own.submission.sha256:
            raise UsageError("run", f"{job.run} is recorded for another source", "give each job an id of its own")
        return found

    def _request(self, prepared: PreparedJob, job: Job) -> JobRequest:
        problem = prepared.problem
        home = self._settings.locate("problems") / problem.slug
        sandbox = self._settings.sandbox
        assert sandbox != "auto"
        return JobRequest(
            run=job.run or secrets.token_hex(8),
            problem=problem.slug if real(home) == real(problem.directory) else str(problem.directory),
            problem_sha256=problem.sha256,
            final=bool(problem.final_tests),
            submission=prepared.submission,
            effort=self._settings.effort,
            baselines=self._baselines,
            device=self._settings.device,
            sandbox=sandbox,
            timed=self._timed,
        )

    def _key(self, own: PreparedJob) -> str:
        if self._answers is None:
            return secrets.token_hex(8)
        return key_of(own, self._machine, self._baselines, timed=self._timed, record=self._record)

    def _hand_over(self, work: _Work) -> None:
        def ended(answer: Future[JobAnswer], device: str) -> None:
            self._events.put(_Done(work, answer, device))

        self._pool.hand_over(work.request, ended, again=work.tries > 1)

    def _end(self, done: _Done) -> Iterator[JobResult]:
        work, device = done.work, done.device
        if self._working.get(work.key) is not work:
            return  # it was given up
        try:
            answer = done.answer.result()
        except (WorkerLost, CancelledError) as lost:
            if (error := self._again(work, lost)) is None:
                return
            answer, device = JobAnswer.failed(work.request.run, error), ""
        del self._working[work.key]
        with self._in_flight.ending(work.use):
            first = self._first(answer, device, work)
        if first.error is None and self._answers is not None:
            self._answers.put(work.key, answer, device)
        for taken in work.waiting:
            copied = replace(self._copied(answer, device, taken), error=first.error)
            yield first if taken is work.first else copied

    def _again(self, work: _Work, lost: Exception) -> KernelmarkError | None:
        """Hand a job over once more, whose worker was lost; returns the error if that is of no use."""
        if work.tries == _TRIES:
            return HarnessError(f"{lost}, {_TRIES} times while this was graded")
        work.tries += 1
        try:
            self._hand_over(work)
        except KernelmarkError as refused:
            return refused
        return None

    def _first(self, answer: JobAnswer, device: str, work: _Work) -> JobResult:
        """The result of the job that was graded, recorded if it should be."""
        result = replace(_result(answer, device, work.first), error=answer.failure(), tries=work.tries)
        if not self._record or answer.verdict is None:
            return result
        try:
            recorder.record(work.prepared, answer.verdict, work.remark)
        except KernelmarkError as unrecorded:
            return replace(result, error=unrecorded)
        self._publisher.due(answer.verdict.problem.slug)
        return replace(result, recorded_in=self._settings)

    def _copied(self, answer: JobAnswer, device: str, taken: _Taken) -> JobResult:
        """The result of a duplicate: the same verdict, under its own author and name, and a run id of its own.

        A recorded one has the same author and name, and shares the run.
        """
        result = replace(_result(answer, device, taken), duplicate=True)
        if self._record:
            return result
        own, verdict, check = {"author": taken.submission.author, "name": taken.submission.name}, None, None
        if answer.verdict is not None:
            submission = answer.verdict.submission.model_copy(update=own)
            run = taken.job.run or secrets.token_hex(8)
            verdict = answer.verdict.model_copy(update={"submission": submission, "run": run})
        if answer.check is not None:
            submission = answer.check.submission.model_copy(update=own)
            check = answer.check.model_copy(update={"submission": submission})
        return replace(result, verdict=verdict, check=check)


def _result(answer: JobAnswer, device: str, taken: _Taken) -> JobResult:
    return JobResult(job=taken.job, verdict=answer.verdict, check=answer.check, seconds=taken.seconds, device=device)
