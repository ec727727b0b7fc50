"""Sends the jobs of one call to workers and collects the results. Trusted; no other part of a fleet records."""

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
from kernelmark.text.terminal import unexpected
from leaderboard.standings.usage import Use

_TRIES = 3  # how many workers may be lost while they grade one job
_WAIT_S = 3600.0  # the longest wait for one event: a queue accepts no infinite timeout


@dataclass(frozen=True)
class _WaitingJob:
    """A job of the caller, its submission as it was read, and when that was (`time.monotonic`)."""

    job: Job
    submission: Submission
    at: float

    @property
    def due(self) -> float:
        """When it times out; infinite without a timeout."""
        return math.inf if self.job.timeout is None else self.at + self.job.timeout

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.at


@dataclass
class _SharedGrading:
    """One source that is being graded: for the first job with this source, and for later jobs with the same one."""

    key: str
    prepared: PreparedJob
    request: JobRequest
    remark: Remark | None
    first: _WaitingJob
    waiting: list[_WaitingJob]
    """The jobs that wait for the answer: the first one, unless it has timed out, and its duplicates."""
    tries: int = 1
    use: Use | None = None
    """What it reserves of its author's daily limits."""


@dataclass(frozen=True)
class _Finished:
    """A worker's answer to a job, or the loss of the worker."""

    grading: _SharedGrading
    answer: Future[JobAnswer]
    device: str


class _EndOfJobs:
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
        """
        Args:
            answers: a cache of earlier answers, for jobs with the same source; None: every job is graded.
            machine: the part of the cache's keys that does not depend on the job.
        """
        self._timed, self._answers, self._machine = timed, answers, machine
        self._in_flight = in_flight or InFlight()
        self._pool, self._settings, self._baselines, self._record = pool, settings, baselines, record
        self._publisher = Publisher(settings)
        self._events: queue.SimpleQueue[Job | _EndOfJobs | _Finished] = queue.SimpleQueue()
        self._capacity = max(1, pool.capacity)  # even if all workers are lost, one job is read, and waits for a worker
        self._room = threading.Semaphore(self._capacity)
        self._closed = False
        self._gradings: dict[str, _SharedGrading] = {}

    def run(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Yield results as they come. An exception of the iterable is raised after the results of earlier jobs."""
        threading.Thread(target=self._read_jobs, args=(iter(jobs),), daemon=True).start()
        end: _EndOfJobs | None = None
        try:
            while end is None or self._gradings:
                event = self._next()
                if self._closed:
                    return
                if isinstance(event, _EndOfJobs):
                    end = event
                    continue
                for result in self._results(event):
                    yield result
                    self._room.release(1 + self._added_capacity())
            if end.error is not None:
                raise end.error
        finally:
            self._closed = True
            self._room.release()
            for grading in list(self._gradings.values()):
                self._give_up(grading)
            self._publisher.close()

    def stop(self) -> None:
        """End `run`, which may be waiting for a result in another thread."""
        self._closed = True
        self._room.release()
        self._events.put(_EndOfJobs())

    def _next(self) -> Job | _EndOfJobs | _Finished | None:
        """Wait for the next event; None if a job has timed out, or if nothing has happened for an hour."""
        due = min((queued.due for grading in self._gradings.values() for queued in grading.waiting), default=math.inf)
        left_s = min(due - time.monotonic(), _WAIT_S)
        if left_s <= 0:
            return None
        try:
            return self._events.get(timeout=left_s)
        except queue.Empty:
            return None

    def _results(self, event: Job | _Finished | None) -> Iterator[JobResult]:
        """Handle an event, and yield the results that follow from it."""
        if event is None:
            return self._expire()
        return self._start(event) if isinstance(event, Job) else self._finish(event)

    def _expire(self) -> Iterator[JobResult]:
        """Yield an error for each job whose timeout has passed; end gradings that no other job waits for."""
        now = time.monotonic()
        for grading in list(self._gradings.values()):
            late = [queued for queued in grading.waiting if queued.due <= now]
            grading.waiting = [queued for queued in grading.waiting if queued.due > now]
            if not grading.waiting:
                self._give_up(grading)
            for queued in late:
                error = JobTimeoutError(f"the job has not ended within its timeout of {queued.job.timeout:g} s")
                yield JobResult(job=queued.job, error=error, seconds=queued.seconds, tries=grading.tries)

    def _give_up(self, grading: _SharedGrading) -> None:
        """Cancel a grading that no job waits for. It is not recorded."""
        del self._gradings[grading.key]
        self._pool.cancel(grading.request.run)
        with self._in_flight.ending(grading.use):
            pass

    def _added_capacity(self) -> int:
        """By how many jobs the pool's capacity has grown since the last call, as workers were added."""
        more = max(0, self._pool.capacity - self._capacity)
        self._capacity += more
        return more

    def _read_jobs(self, jobs: Iterator[Job]) -> None:
        """Read jobs from the caller's iterator while there is room for them. Runs in a thread of its own."""
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
            self._events.put(_EndOfJobs())
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller's thread
            self._events.put(_EndOfJobs(error))

    def _start(self, job: Job) -> Iterator[JobResult]:
        """Start grading a job; yields its result if that is known already, or an error if the job is invalid."""
        begun = time.monotonic()
        try:
            prepared_job = prepared(self._settings, job)
            remark = admit(prepared_job, exempt=True) if self._record else None  # `_admit` checks the limits
            if recorded := self._recorded(prepared_job, job):
                seconds = time.monotonic() - begun
                yield JobResult(job=job, verdict=recorded, seconds=seconds, recorded_in=self._settings)
                return
            key, queued = self._key(prepared_job), _WaitingJob(job, prepared_job.submission, begun)
            if key in self._gradings:
                self._gradings[key].waiting.append(queued)
            elif self._answers is not None and (known := self._answers.get(key)):
                copied = self._copy_for(known.answer, known.device, queued)
                yield replace(copied, recorded_in=self._settings if self._record else None)
            else:
                grading = _SharedGrading(key, prepared_job, self._request(prepared_job, job), remark, queued, [queued])
                self._admit(grading)
                self._gradings[key] = grading
        except KernelmarkError as error:
            yield JobResult(job=job, error=error, seconds=time.monotonic() - begun)
        except Exception as error:  # noqa: BLE001 - one failure must not end the gradings of the others
            yield JobResult(job=job, error=HarnessError(unexpected(error)), seconds=time.monotonic() - begun)

    def _admit(self, grading: _SharedGrading) -> None:
        """Send a job to a worker if its author is within the daily limits; jobs in flight count towards them."""
        if self._record:
            author = grading.request.submission.author
            grading.use = self._in_flight.take(self._settings, author, lambda: usual_s(grading.prepared))
        try:
            self._send(grading)
        except BaseException:
            with self._in_flight.ending(grading.use):
                raise

    def _recorded(self, prepared_job: PreparedJob, job: Job) -> Verdict | None:
        """The verdict that the ledger already has under the job's run id, if results are recorded and it has one.

        Raises:
            UsageError: the id is invalid, or belongs to another source.
        """
        if job.run is None:
            return None
        if not isinstance(job.run, str) or not re.fullmatch(RUN_ID, job.run):
            raise UsageError("run", f"{job.run!r} is not a run id", "give 16 hexadecimal digits")
        found = recorder.recorded(prepared_job, job.run) if self._record else None
        if found is not None and found.submission.sha256 != prepared_job.submission.sha256:
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

    def _key(self, prepared_job: PreparedJob) -> str:
        if self._answers is None:
            return secrets.token_hex(8)
        return key_of(prepared_job, self._machine, self._baselines, timed=self._timed, record=self._record)

    def _send(self, grading: _SharedGrading) -> None:
        def ended(answer: Future[JobAnswer], device: str) -> None:
            self._events.put(_Finished(grading, answer, device))

        self._pool.hand_over(grading.request, ended, again=grading.tries > 1)

    def _finish(self, finished: _Finished) -> Iterator[JobResult]:
        grading, device = finished.grading, finished.device
        if self._gradings.get(grading.key) is not grading:
            return  # it was given up
        try:
            answer = finished.answer.result()
        except (WorkerLost, CancelledError) as lost:
            if (error := self._retry(grading, lost)) is None:
                return
            answer, device = JobAnswer.failed(grading.request.run, error), ""
        del self._gradings[grading.key]
        with self._in_flight.ending(grading.use):
            first = self._recorded_result(answer, device, grading)
        if first.error is None and self._answers is not None:
            self._answers.put(grading.key, answer, device)
        for queued in grading.waiting:
            copied = replace(self._copy_for(answer, device, queued), error=first.error, recorded_in=first.recorded_in)
            yield first if queued is grading.first else copied

    def _retry(self, grading: _SharedGrading, lost: Exception) -> KernelmarkError | None:
        """Send a job whose worker was lost to another; returns an error if that is refused or happened too often."""
        if grading.tries == _TRIES:
            return HarnessError(f"{lost}, {_TRIES} times while this was graded")
        grading.tries += 1
        try:
            self._send(grading)
        except KernelmarkError as refused:
            return refused
        return None

    def _recorded_result(self, answer: JobAnswer, device: str, grading: _SharedGrading) -> JobResult:
        """Record the answer, if results are recorded; returns the result, with an error if it could not be recorded."""
        result = replace(_result(answer, device, grading.first), error=answer.failure(), tries=grading.tries)
        if not self._record or answer.verdict is None:
            return result
        try:
            recorder.record(grading.prepared, answer.verdict, grading.remark)
        except KernelmarkError as unrecorded:
            return replace(result, error=unrecorded)
        self._publisher.due(answer.verdict.problem.slug)
        return replace(result, recorded_in=self._settings)

    def _copy_for(self, answer: JobAnswer, device: str, queued: _WaitingJob) -> JobResult:
        """The result of a duplicate: the same verdict with the author, name and run id of the duplicate.

        If results are recorded, author and name are the same anyway, and the copy keeps the run id of the record.
        """
        result = replace(_result(answer, device, queued), duplicate=True)
        if self._record:
            return result
        own, verdict, check = {"author": queued.submission.author, "name": queued.submission.name}, None, None
        if answer.verdict is not None:
            submission = answer.verdict.submission.model_copy(update=own)
            run = queued.job.run or secrets.token_hex(8)
            verdict = answer.verdict.model_copy(update={"submission": submission, "run": run})
        if answer.check is not None:
            submission = answer.check.submission.model_copy(update=own)
            check = answer.check.model_copy(update={"submission": submission})
        return replace(result, verdict=verdict, check=check)


def _result(answer: JobAnswer, device: str, queued: _WaitingJob) -> JobResult:
    return JobResult(job=queued.job, verdict=answer.verdict, check=answer.check, seconds=queued.seconds, device=device)
