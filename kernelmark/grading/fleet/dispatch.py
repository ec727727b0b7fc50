"""Hands jobs to workers and collects what becomes of them. Trusted; the only one that records."""

from __future__ import annotations

import queue
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from harness.errors import HarnessError, KernelmarkError, UsageError
from harness.files.outside import real
from harness.submission import Submission
from harness.verdict import RUN_ID, Verdict
from kernelmark.grading.fleet.engine import AHEAD, Worker, WorkerLost
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.messages import Answer, Request
from kernelmark.grading.prepared import PreparedJob, Remark
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import InFlight
from kernelmark.record.publishing import Publisher
from leaderboard.standings.usage import Use

_TRIES = 3  # a job whose worker was lost is handed over at most twice more
_KEPT = 1000  # answers for later duplicates
_NONE_S = 600.0  # how long a job waits while no worker is there


class Plan:
    """Which worker gets the next job. Shared by all batches of a fleet, in any thread."""

    def __init__(self, workers: Sequence[Worker] = ()) -> None:
        self._workers, self._lock = list(workers), threading.Condition()
        self._load = dict.fromkeys(range(len(workers)), 0)
        self._there = set(self._load)
        self._devices: list[str] = []
        self._runs: set[str] = set()
        self._done: Counter[str] = Counter()
        self._closed = False

    @property
    def capacity(self) -> int:
        """How many jobs all workers together can have at a time, those included whose sandboxes only start."""
        with self._lock:
            return sum(self._workers[index].slots + AHEAD for index in self._there)

    def start(self) -> None:
        """Start the workers and wait until all are up. Does nothing if they are.

        Raises:
            UsageError: they have been closed.
            HarnessError: one did not start.
        """
        if self._closed:
            raise UsageError("Fleet", "is closed", "grade inside its `with` block, or make another one")
        if not self._devices:
            for worker in self._workers:
                worker.start()
            # Asked only now: a worker that is lost later may be starting again when its device's name is needed.
            self._devices = [worker.device() for worker in self._workers]

    def add(self, worker: Worker) -> None:
        """Give jobs to this worker, too, which is up: a new one, or one that was removed."""
        with self._lock:
            if worker not in self._workers:
                self._load[len(self._workers)] = 0
                self._workers.append(worker)
                self._devices.append("")
            index = self._workers.index(worker)
            self._devices[index] = worker.device()
            self._there.add(index)
            self._lock.notify_all()

    def remove(self, worker: Worker) -> None:
        """Give it no more jobs; those that it has still end."""
        with self._lock:
            self._there.discard(self._workers.index(worker))

    def close(self) -> None:
        """End the workers; jobs that they have, and later ones, fail."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        for worker in self._workers:
            worker.close()

    def hand_over(self, request: Request, ended: Callable[[Future[Answer], str], None]) -> None:
        """Give a job to the worker with the most room; `ended` gets what became of it, and its device's name.

        Waits while all workers are lost.

        Raises:
            UsageError: a job with the same run id is being graded.
            HarnessError: the workers have been closed, or were lost and did not come back for ten minutes.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: self._there or self._closed, _NONE_S):
                raise HarnessError("all workers of the fleet are lost", "`kernelmark fleet status` shows its machines")
            if self._closed:
                raise HarnessError("the fleet was closed")
            if request.run in self._runs:
                raise UsageError("run", f"another job with the id {request.run} is being graded", "give each its own")
            self._runs.add(request.run)
            index = min(self._there, key=lambda each: self._load[each] / self._workers[each].slots)
            self._load[index] += 1

        def left(answer: Future[Answer]) -> None:
            with self._lock:
                self._runs.remove(request.run)
                self._load[index] -= 1
                if answer.exception() is None:
                    self._done[self._devices[index]] += 1
            ended(answer, self._devices[index])

        self._workers[index].submit(request).add_done_callback(left)

    def counts(self) -> tuple[int, int, dict[str, int]]:
        """Jobs done, jobs in flight, and jobs done by device."""
        with self._lock:
            return self._done.total(), sum(self._load.values()), dict(self._done)


@dataclass(frozen=True)
class _Taken:
    """A job, as it was read, and the moment at which it was taken."""

    job: Job
    submission: Submission
    at: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.at


@dataclass
class _Work:
    """A source that is being graded, for the job that came with it first and its duplicates."""

    key: tuple[str, ...]
    prepared: PreparedJob
    request: Request
    remark: Remark | None
    first: _Taken
    duplicates: list[_Taken] = field(default_factory=list)
    tries: int = 0
    use: Use | None = None
    """What is reserved of its author's limits a day."""


@dataclass(frozen=True)
class _Done:
    work: _Work
    answer: Future[Answer]
    device: str


class _End:
    """The iterable has no more jobs, or has raised."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Batch:
    """One call of `grade_many`."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        baselines: tuple[str, ...],
        *,
        record: bool,
        timed: bool = True,
        reuse: bool = True,
        in_flight: InFlight | None = None,
    ) -> None:
        self._timed, self._reuse = timed, reuse
        self._in_flight = in_flight or InFlight()
        self._plan, self._settings, self._baselines, self._record = plan, settings, baselines, record
        self._publisher = Publisher(settings)
        self._events: queue.SimpleQueue[Job | _End | _Done] = queue.SimpleQueue()
        self._capacity = max(1, plan.capacity)  # while all workers are lost, a job waits for the first
        self._room = threading.Semaphore(self._capacity)
        self._closed = False
        self._working: dict[tuple[str, ...], _Work] = {}
        self._answers: OrderedDict[tuple[str, ...], tuple[Answer, str]] = OrderedDict()

    def run(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Yield the results as they come."""
        threading.Thread(target=self._pull, args=(iter(jobs),), daemon=True).start()
        ended = False
        try:
            while not ended or self._working:
                event = self._events.get()
                if self._closed:
                    return
                if isinstance(event, _End):
                    if event.error is not None:
                        raise event.error
                    ended = True
                    continue
                for result in self._begin(event) if isinstance(event, Job) else self._end(event):
                    yield result
                    self._room.release(1 + self._growth())
        finally:
            self._closed = True
            self._room.release()
            for work in self._working.values():  # nobody records them any more
                with self._in_flight.ending(work.use):
                    pass
            self._publisher.close()

    def stop(self) -> None:
        """Let `run` end now, although it may be waiting for a result in another thread."""
        self._closed = True
        self._room.release()
        self._events.put(_End())

    def _growth(self) -> int:
        """For how many more jobs there is room since workers came."""
        more = max(0, self._plan.capacity - self._capacity)
        self._capacity += more
        return more

    def _pull(self, jobs: Iterator[Job]) -> None:
        """Take a job whenever there is room for one."""
        try:
            while True:
                self._room.acquire()
                if self._closed:
                    return
                self._events.put(next(jobs))
        except StopIteration:
            self._events.put(_End())
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller's thread
            self._events.put(_End(error))

    def _begin(self, job: Job) -> Iterator[JobResult]:
        """Hand a job over; yields its result if there is one already."""
        begun = time.monotonic()
        try:
            prepared, remark = self._read(job)
            if recorded := self._recorded(prepared, job):
                yield JobResult(job=job, verdict=recorded, seconds=time.monotonic() - begun)
                return
            key, taken = self._key(prepared), _Taken(job, prepared.submission, begun)
            if key in self._answers:
                self._answers.move_to_end(key)
                yield self._copied(*self._answers[key], taken)
            elif key in self._working:
                self._working[key].duplicates.append(taken)
            else:
                work = _Work(key, prepared, self._request(prepared, job), remark, taken)
                self._admit(work)
                self._working[key] = work
        except KernelmarkError as error:
            yield JobResult(job=job, error=error, seconds=time.monotonic() - begun)

    def _read(self, job: Job) -> tuple[PreparedJob, Remark | None]:
        prepared = PreparedJob.prepare(
            self._settings, job.problem, job.submission, author=job.author, language=job.language, beside=job.beside
        )
        return prepared, prepared.admit(exempt=True) if self._record else None  # `_admit` asks for the limits

    def _admit(self, work: _Work) -> None:
        """Hand it over, if its author is within the limits a day, jobs in flight included."""
        own = work.prepared
        if self._record:
            work.use = self._in_flight.take(self._settings, own.submission.author, own.usual_s)
        try:
            self._hand_over(work)
        except BaseException:
            with self._in_flight.ending(work.use):
                raise

    def _recorded(self, prepared: PreparedJob, job: Job) -> Verdict | None:
        """The verdict that the ledger has of the job's run, if this is to be recorded."""
        if job.run is None:
            return None
        if not re.fullmatch(RUN_ID, job.run):
            raise UsageError("run", f"{job.run!r} is not a run id", "give 16 hexadecimal digits")
        found = prepared.recorded(job.run) if self._record else None
        if found is not None and found.submission.sha256 != prepared.submission.sha256:
            raise UsageError("run", f"{job.run} is recorded for another source", "give each job an id of its own")
        return found

    def _request(self, prepared: PreparedJob, job: Job) -> Request:
        own, problem = prepared.submission, prepared.problem
        home = self._settings.locate("problems") / problem.slug
        sandbox = self._settings.sandbox
        assert sandbox != "auto"
        return Request(
            run=job.run or secrets.token_hex(8),
            problem=problem.slug if real(home) == real(problem.directory) else str(problem.directory),
            problem_sha256=problem.sha256,
            final=bool(problem.final_tests),
            name=own.name,
            author=own.author,
            language=own.language,
            source=own.source.decode(),
            beside={name: content.decode() for name, content in own.beside},
            effort=self._settings.effort,
            baselines=self._baselines,
            device=self._settings.device,
            sandbox=sandbox,
            timed=self._timed,
        )

    def _key(self, prepared: PreparedJob) -> tuple[str, ...]:
        """What has the same verdict; recorded ones are told apart by their author and name, which the record shows."""
        if not self._reuse:
            return (secrets.token_hex(8),)
        own = prepared.submission
        return (prepared.problem.sha256, own.sha256, *((own.author, own.name) if self._record else ()))

    def _hand_over(self, work: _Work) -> None:
        self._plan.hand_over(work.request, lambda answer, device: self._events.put(_Done(work, answer, device)))

    def _end(self, done: _Done) -> Iterator[JobResult]:
        work, device = done.work, done.device
        try:
            answer = done.answer.result()
        except WorkerLost as lost:
            if (error := self._again(work, lost)) is None:
                return
            answer, device = Answer(run=work.request.run, error=str(error), error_class=type(error).__name__), ""
        del self._working[work.key]
        with self._in_flight.ending(work.use):
            first = self._first(answer, device, work)
        if first.error is None and self._reuse:
            self._answers[work.key] = answer, device
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        yield first
        for taken in work.duplicates:
            yield replace(self._copied(answer, device, taken), error=first.error)

    def _again(self, work: _Work, lost: WorkerLost) -> KernelmarkError | None:
        """Hand a job over once more, whose worker was lost; returns the error if that is of no use."""
        work.tries += 1
        if work.tries == _TRIES:
            return HarnessError(f"{lost}, {_TRIES} times while this was graded")
        try:
            self._hand_over(work)
        except KernelmarkError as refused:
            return refused
        return None

    def _first(self, answer: Answer, device: str, work: _Work) -> JobResult:
        """The result of the job that was graded, recorded if it should be."""
        verdict = answer.verdict
        result = self._result(answer, device, work.first, answer.failure())
        if not self._record or verdict is None:
            return result
        try:
            work.prepared.record(verdict, work.remark)
        except KernelmarkError as unrecorded:
            return replace(result, error=unrecorded)
        self._publisher.due(verdict.problem.slug)
        return replace(result, recorded_in=self._settings)

    def _copied(self, answer: Answer, device: str, taken: _Taken) -> JobResult:
        """The result of a duplicate: the same verdict, under its own author and name, and a run id of its own.

        A recorded one has the same author and name, and shares the run.
        """
        answer = answer if self._record else self._renamed(answer, taken)
        return replace(self._result(answer, device, taken), duplicate=True)

    def _renamed(self, answer: Answer, taken: _Taken) -> Answer:
        own, verdict, check = taken.submission, answer.verdict, answer.check
        whose = {"author": own.author, "name": own.name}
        if verdict is not None:
            submission = verdict.submission.model_copy(update=whose)
            run = taken.job.run or secrets.token_hex(8)
            verdict = verdict.model_copy(update={"submission": submission, "run": run})
        if check is not None:
            check = check.model_copy(update={"submission": check.submission.model_copy(update=whose)})
        return answer.model_copy(update={"verdict": verdict, "check": check})

    def _result(self, answer: Answer, device: str, taken: _Taken, error: KernelmarkError | None = None) -> JobResult:
        return JobResult(
            job=taken.job,
            verdict=answer.verdict,
            check=answer.check,
            error=error,
            seconds=taken.seconds,
            device=device,
        )
