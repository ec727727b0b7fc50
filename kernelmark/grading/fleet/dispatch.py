"""Hands the jobs of one call to workers and collects the results. Trusted; no other part of a fleet records."""

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
from kernelmark.grading.recorder import admit, usual_s
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import InFlight
from kernelmark.record.lateness import Remark
from kernelmark.record.publishing import Publisher
from leaderboard.standings.usage import Use

_TRIES = 3  # a job whose worker was lost is handed over at most twice more
_WAIT_S = 3600.0  # at most for one event: a queue accepts no infinite timeout


@dataclass(frozen=True)
class _Taken:
    """A job that was taken from the caller, its submission as it was read, and the moment (`time.monotonic`)."""

    job: Job
    submission: Submission
    at: float

    @property
    def due(self) -> float:
        """The moment at which it times out; infinite without a timeout."""
        return math.inf if self.job.timeout is None else self.at + self.job.timeout

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.at


@dataclass
class _Work:
    """A source that is being graded, for the first job that has it and for the duplicates of that job."""

    key: str
    prepared: PreparedJob
    request: JobRequest
    remark: Remark | None
    first: _Taken
    waiting: list[_Taken]
    """The jobs that wait for its answer: the first one, unless it has timed out, and duplicates."""
    tries: int = 1
    use: Use | None = None
    """What is reserved of its author's daily limits."""


@dataclass(frozen=True)
class _Done:
    """A worker's answer to a job, or the loss of the worker."""

    work: _Work
    answer: Future[JobAnswer]
    device: str


class _End:
    """The end of the caller's jobs, with the exception that its iterable raised, if any."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Dispatch:
    """One call of `grade_many`.

    The thread that reads the jobs and the threads that read answers put events into one queue. `run` handles them in
    the caller's thread, so the state here needs no lock.
    """

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
        """`answers`: the cache from which jobs with an equal source are answered; None: each job is graded.
        `machine`: what its keys contain besides the job.
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
        """Yield results as they come. What the iterable raises is raised after the results of the jobs before it."""
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
        """Wait for the next event; None if a job has timed out, or if nothing has happened for an hour."""
        due = min((taken.due for work in self._working.values() for taken in work.waiting), default=math.inf)
        left_s = min(due - time.monotonic(), _WAIT_S)
        if left_s <= 0:
            return None
        try:
            return self._events.get(timeout=left_s)
        except queue.Empty:
            return None

    def _results(self, event: Job | _Done | None) -> Iterator[JobResult]:
        """Handle an event, and yield the results that it leads to."""
        if event is None:
            return self._timed_out()
        return self._begin(event) if isinstance(event, Job) else self._end(event)

    def _timed_out(self) -> Iterator[JobResult]:
        """Yield errors for the jobs whose timeout has passed, and give up what is graded for no other job."""
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
        """Cancel a grading that no job waits for any more. It is not recorded."""
        del self._working[work.key]
        self._pool.cancel(work.request.run)
        with self._in_flight.ending(work.use):
            pass

    def _growth(self) -> int:
        """By how many jobs the pool's capacity has grown since the last call, because workers were added."""
        more = max(0, self._pool.capacity - self._capacity)
        self._capacity += more
        return more

    def _pull(self, jobs: Iterator[Job]) -> None:
        """Take jobs from the caller's iterator as there is room for them. Runs in a thread of its own."""
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
        """Start grading a job; yields its result if it is known already, or an error if the job is not valid."""
        begun = time.monotonic()
        try:
            own = prepared(self._settings, job)
            remark = admit(own, exempt=True) if self._record else None  # `_admit` checks the limits
            if recorded := self._recorded(own, job):
                seconds = time.monotonic() - begun
                yield JobResult(job=job, verdict=recorded, seconds=seconds, recorded_in=self._settings)
                return
            key, taken = self._key(own), _Taken(job, own.submission, begun)
            if key in self._working:
                self._working[key].waiting.append(taken)
            elif self._answers is not None and (known := self._answers.get(key)):
                copied = self._copied(known.answer, known.device, taken)
                yield replace(copied, recorded_in=self._settings if self._record else None)
            else:
                work = _Work(key, own, self._request(own, job), remark, taken, [taken])
                self._admit(work)
                self._working[key] = work
        except KernelmarkError as error:
            yield JobResult(job=job, error=error, seconds=time.monotonic() - begun)

    def _admit(self, work: _Work) -> None:
        """Hand a job over, if its author is within the daily limits, with the jobs in flight counted."""
        own = work.prepared
        if self._record:
            work.use = self._in_flight.take(self._settings, own.submission.author, lambda: usual_s(own))
        try:
            self._hand_over(work)
        except BaseException:
            with self._in_flight.ending(work.use):
                raise

    def _recorded(self, own: PreparedJob, job: Job) -> Verdict | None:
        """The verdict that the ledger already has under the job's run id; None if it has none, or nothing is recorded.

        Raises:
            UsageError: the id is not valid, or is that of another source.
        """
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
            copied = replace(self._copied(answer, device, taken), error=first.error, recorded_in=first.recorded_in)
            yield first if taken is work.first else copied

    def _again(self, work: _Work, lost: Exception) -> KernelmarkError | None:
        """Give a job whose worker was lost to another one; returns an error if it was lost too often or is refused."""
        if work.tries == _TRIES:
            return HarnessError(f"{lost}, {_TRIES} times while this was graded")
        work.tries += 1
        try:
            self._hand_over(work)
        except KernelmarkError as refused:
            return refused
        return None

    def _first(self, answer: JobAnswer, device: str, work: _Work) -> JobResult:
        """The result of the job that was graded. If it cannot be recorded, the result has that error, too."""
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
        """The result of a duplicate: the same verdict with the duplicate's own author, name and run id.

        Where verdicts are recorded, a duplicate has the same author and name, and its verdict keeps the run id.
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
