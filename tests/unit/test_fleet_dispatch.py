"""The dispatcher: which worker gets a job, and that each job ends in one result, whatever happens to workers."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import HarnessError, JobTimeoutError, LedgerError, ProblemError, UsageError
from harness.judge import Progress
from harness.submission import Submission
from harness.verdict import Stage
from kernelmark.grading.fleet import dispatch
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.messages import AHEAD, JobAnswer, JobRequest, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.grading.setup import PreparedJob
from tests.unit.conftest import recorded
from tests.workers import (
    LOST,
    Act,
    FakeWorker,
    answered,
    batch,
    graded,
    held,
    job,
    keys,
    later,
    lost_times,
    request,
    soon,
    until,
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("competition", "no_thread_stays")


def test_results_come_when_they_are_ready() -> None:
    worker = FakeWorker(held, slots=3)
    results = batch(worker).run(map(job, range(3)))
    first = later(next, results)
    *others, last = worker.has(3)
    worker.answer(last)
    assert first.result(10).job.key == 2
    worker.answer(*others)
    assert keys(soon(lambda: list(results))) == [0, 1]


def test_a_result_has_its_job_device_and_duration() -> None:
    worker = FakeWorker(name="NVIDIA H200")
    [result] = graded(worker, [job(7, author="ada", run="0123456789abcdef")])
    [request] = worker.handed
    own = Submission.of("# 7\n", "py", author="ada")
    assert (request.submission, request.effort, request.baselines) == (own, "quick", ("none",))
    assert (request.problem, request.sandbox, request.device, request.timed) == ("double", "bwrap", "cpu", True)
    assert (result.verdict.run, result.device) == ("0123456789abcdef", "NVIDIA H200")
    assert (result.error, result.duplicate, 0 < result.seconds < 10) == (None, False, True)


class Endless:
    """Jobs without end, and how many were taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[Job]:
        for self.taken in itertools.count(1):
            yield job(self.taken)

    def stays_at(self, count: int) -> None:
        until(lambda: self.taken >= count)
        time.sleep(0.1)
        assert self.taken == count


def test_an_endless_iterable_is_taken_as_far_as_there_is_room() -> None:
    worker, jobs = FakeWorker(held, slots=2), Endless()
    results = batch(worker).run(jobs)
    for taken, answered_at in ((2 + AHEAD, 0), (3 + AHEAD, 3)):
        waiting = later(next, results)
        jobs.stays_at(taken)
        worker.answer(worker.handed[answered_at])
        assert waiting.result(10).job.key == answered_at + 1
    results.close()  # type: ignore[attr-defined]


def test_nothing_more_is_taken_while_results_are_not() -> None:
    jobs = Endless()
    results = batch(FakeWorker(slots=1)).run(jobs)
    soon(lambda: next(results))
    jobs.stays_at(1 + AHEAD)  # the room of a result is free when the next is asked for
    soon(lambda: [next(results) for _ in range(50)])
    jobs.stays_at(51 + AHEAD)
    results.close()  # type: ignore[attr-defined]


def test_duplicates_and_refused_jobs_take_room_too() -> None:
    """Otherwise an endless iterable of them would be read to no end."""
    worker = FakeWorker(held, slots=1)
    for jobs in (itertools.repeat(job(1)), itertools.repeat(Job(problem="no", submission="x"))):
        taken = itertools.count()
        results = batch(worker).run(one for one in jobs if next(taken) >= 0)
        waiting = later(next, results)
        until(lambda: worker.handed or waiting.done())  # noqa: B023 - it is called at once
        time.sleep(0.2)
        assert next(taken) <= 2 * (1 + AHEAD)
        worker.answer(*worker.handed[:1])
        worker.handed.clear()
        waiting.result(10)
        results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("last", [LookupError("no more answers"), "a string"])
def test_an_iterable_that_raises_loses_nothing_that_was_taken_before(last: object) -> None:
    def jobs() -> Iterator[Job]:
        yield from map(job, range(5))
        if isinstance(last, Exception):
            raise last
        yield last  # type: ignore[misc]

    worker = FakeWorker(held, slots=1)
    results, got = batch(worker).run(jobs()), list[JobResult]()
    waiting = later(next, results)
    for asked in worker.has(1 + AHEAD):
        time.sleep(0.02)
        worker.answer(asked)
    got.append(waiting.result(10))
    kind, what = (LookupError, "no more") if isinstance(last, Exception) else (UsageError, "jobs has a str; give")
    with pytest.raises(kind, match=what):
        soon(lambda: got.extend(results))
    assert sorted(keys(got)) == list(range(5))  # type: ignore[type-var]
    assert all(result.verdict for result in got)


def test_a_job_that_times_out_is_ended_and_its_duplicates_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, passed_s = FakeWorker(held, slots=2), [0.0]
    monkeypatch.setattr(dispatch, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + passed_s[0]))
    plan = WorkerPool([worker])
    jobs = [job(1, timeout=1000), job(1, author="bob"), job(2, timeout=1000), job(3, timeout=1e9), job(4)]
    results = batch(plan=plan).run(jobs)
    waiting = later(next, results)
    one, two, three, four = worker.has(4)
    passed_s[0] = 1000.0
    worker.answer(four)  # an event, after which it looks at the time
    assert waiting.result(10).job.key == 4
    got = [soon(lambda: next(results)) for _ in range(2)]
    assert keys(got) == [1, 2]
    assert {type(result.error) for result in got} == {JobTimeoutError}
    assert str(got[0].error) == "the job has not ended within its timeout of 1000 s"
    assert all(result.seconds >= 1000 and result.tries == 1 and result.verdict is None for result in got)
    assert worker.cancelled == [two.run]
    worker.answer(one, three)
    others = soon(lambda: list(results))
    assert [(result.verdict is not None, result.error, result.duplicate) for result in others] == [
        (True, None, True), (True, None, False),
    ]  # fmt: skip
    assert others[0].verdict.submission.author == "bob"
    assert plan.counts()[:2] == (3, 0)


def test_a_bad_job_is_a_result_and_stops_no_other(competition: Path) -> None:
    bad = [
        Job(problem="trebble", submission="x", key="no such problem"),
        Job(problem="double", submission=competition / "none.py", key="no such file"),
        Job(problem="double", submission="#" * (1 << 21), key="too large"),
        Job(problem="double", submission="x", language="rb", key="language"),
        Job(problem="double", submission="x", run="17", key="run id"),
        Job(problem="double", submission="x", run=17, key="a number for a run id"),  # type: ignore[arg-type]
        Job(problem="double", submission=None, key="no source"),  # type: ignore[arg-type]
        Job(problem=7, submission="x", key="no problem"),  # type: ignore[arg-type]
        Job(problem="double", submission="x", timeout=0, key="no time"),
        Job(problem="double", submission="x", timeout="9", key="a text for a time"),  # type: ignore[arg-type]
    ]
    given = [one for number, wrong in enumerate(bad) for one in (job(number), wrong)]
    results = {result.job.key: result for result in graded(FakeWorker(), given)}
    assert set(results) == {one.key for one in given}
    for wrong in bad:
        result = results[wrong.key]
        assert isinstance(result.error, UsageError), wrong.key
        assert result.verdict is None
    assert all(results[number].verdict for number in range(len(bad)))


def test_an_unexpected_error_with_one_job_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key_of(prepared: PreparedJob, *_: object, **__: object) -> str:
        if prepared.submission.source == b"one":
            raise PermissionError("a baseline cannot be read")
        return prepared.submission.sha256

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the traceback goes there
    monkeypatch.setattr(dispatch, "key_of", key_of)
    jobs = [Job(problem="double", submission=text, key=text) for text in ("one", "other")]
    results = {result.job.key: result for result in graded(FakeWorker(), jobs)}
    assert isinstance(results["one"].error, HarnessError)
    assert results["other"].verdict


@pytest.mark.parametrize("error", [ProblemError("x/problem.toml", "differs", "fix it"), LedgerError("broken")])
def test_a_workers_error_keeps_its_class_and_its_line(error: HarnessError | UsageError) -> None:
    def act(request: JobRequest) -> JobAnswer:
        return JobAnswer.model_validate_json(JobAnswer.failed(request.run, error).line())

    [result] = graded(FakeWorker(act), [job(1)])
    assert (type(result.error), str(result.error), result.verdict) == (type(error), str(error), None)


@pytest.mark.parametrize("times", [1, 2])
def test_a_job_whose_worker_was_lost_is_handed_over_again(times: int) -> None:
    act, tried = lost_times(times)
    plan = WorkerPool([FakeWorker(act, slots=2)])
    results = soon(lambda: list(batch(plan=plan).run(map(job, range(20)))))
    assert sorted(keys(results)) == list(range(20))  # type: ignore[type-var]
    assert all(result.verdict and result.error is None and result.tries == times + 1 for result in results)
    assert (plan.counts()[0], plan.lost, plan.retried) == (20, 20 * times, 20 * times)
    assert set(tried.values()) == {times + 1}


def test_a_job_that_loses_its_worker_three_times_fails_alone() -> None:
    tried: Counter[bytes] = Counter()

    def act(request: JobRequest) -> JobAnswer | WorkerLost:
        tried[request.submission.source] += 1
        return LOST if request.submission.source == b"# 3\n" else answered(request)

    worker = FakeWorker(act)
    plan = WorkerPool([worker])
    results = {result.job.key: result for result in soon(lambda: list(batch(plan=plan).run(map(job, range(6)))))}
    error = results[3].error
    assert type(error) is HarnessError
    assert str(error) == "a worker ended, 3 times while this was graded"
    assert (tried[b"# 3\n"], results[3].verdict, results[3].device) == (3, None, "")
    assert all(results[number].verdict for number in (0, 1, 2, 4, 5))
    assert plan.counts() == (5, 0, {"CPU": 5})
    assert (results[3].tries, results[0].tries, plan.lost, plan.retried) == (3, 1, 3, 2)


@pytest.mark.parametrize("act", [held, answered])
def test_a_batch_that_is_left_early_leaves_nothing(act: Act) -> None:
    """The thread that reads the jobs ends (see `no_thread_stays`), and its jobs count no more once they have ended."""
    worker = FakeWorker(act)
    plan, jobs = WorkerPool([worker]), Endless()
    results = batch(plan=plan).run(jobs)
    waiting = later(next, results)
    jobs.stays_at(1 + AHEAD)
    if act is held:
        worker.answer(worker.handed[0])
    waiting.result(10)
    results.close()  # type: ignore[attr-defined]
    assert worker.cancelled == ([request.run for request in worker.handed[1:]] if act is held else worker.cancelled)
    done, in_flight, _ = plan.counts()
    assert (in_flight, plan.lost) == (0, 0)
    assert done + len(worker.cancelled) == len(worker.handed)
    taken = jobs.taken
    time.sleep(0.1)
    assert jobs.taken == taken


def test_a_batch_that_is_left_while_the_next_job_is_awaited_ends_with_it() -> None:
    goes_on = threading.Event()

    def jobs() -> Iterator[Job]:
        yield job(1)
        goes_on.wait(10)
        yield job(2)

    worker = FakeWorker()
    results = batch(worker).run(jobs())
    assert soon(lambda: next(results)).job.key == 1
    soon(results.close)  # type: ignore[attr-defined]
    goes_on.set()
    time.sleep(0.1)
    assert len(worker.handed) == 1


def test_two_batches_that_record_at_once_keep_one_ledger(competition: Path) -> None:
    plan = WorkerPool([FakeWorker(slots=2)])

    def record(own: Sequence[int]) -> list[JobResult]:
        return list(batch(plan=plan, record=True).run(map(job, own)))

    with ThreadPoolExecutor(2) as callers:
        both = list(callers.map(record, (range(8), range(100, 108))))
    assert [result.error for results in both for result in results] == [None] * 16
    runs = [result.verdict.run for results in both for result in results if result.verdict]
    assert sorted(verdict.run for verdict in recorded(competition)) == sorted(runs)


def test_the_worker_with_the_most_room_gets_the_next_job() -> None:
    small, large = FakeWorker(held, slots=1, name="small"), FakeWorker(held, slots=3, name="large")
    plan = WorkerPool([small, large])
    results = batch(plan=plan).run(map(job, range(100)))
    waiting = later(next, results)
    room = 4 + 2 * AHEAD
    small.has(room // 4)
    large.has(room - room // 4)
    assert plan.counts()[1] == room
    for count in range(room - room // 4, room + 1):  # whoever ends a job gets the next
        large.answer(large.handed[-1])
        assert waiting.result(10).device == "large"
        waiting = later(next, results)
        large.has(count + 1)
    assert len(small.handed) == room // 4
    plan.close()
    small.close()
    large.close()
    waiting.result(10)
    results.close()  # type: ignore[attr-defined]


def test_a_closed_fleet_ends_its_batches_and_begins_no_other() -> None:
    worker = FakeWorker(held)
    plan = WorkerPool([worker])
    results = batch(plan=plan).run(map(job, range(20)))
    waiting = later(next, results)
    worker.has(1 + AHEAD)
    plan.close()
    worker.close()
    got = [waiting.result(10), *soon(lambda: list(results))]
    assert sorted(keys(got)) == list(range(20))  # type: ignore[type-var]
    assert {(type(result.error), str(result.error)) for result in got} == {(HarnessError, "the fleet was closed")}
    assert len(worker.handed) == 1 + AHEAD, "no job of a closed fleet is tried again"


def test_a_job_alone_waits_for_its_worker_and_has_it_to_itself() -> None:
    """Other jobs go to other workers meanwhile; where there is none, they wait."""
    busy, free = FakeWorker(held, slots=2), FakeWorker(held, slots=2)
    pool, ended = WorkerPool([busy]), list[str]()

    def hand_over(number: int, **how: bool) -> Future[None]:
        asked = request(Submission.of(f"# {number}\n", "py", author="ada"), f"{number:016x}")
        return later(lambda: pool.hand_over(asked, lambda *_: ended.append(asked.run), **how))

    hand_over(0).result(10)
    alone = hand_over(1, alone=True)
    until(lambda: pool._reserved == [busy])
    waits = hand_over(2)
    assert len(busy.has(1)) == 1, "neither has begun"
    busy.answer(busy.handed[0])
    alone.result(10)
    assert [asked.run for asked in busy.has(2)[1:]] == [f"{1:016x}"]
    assert not waits.done()
    pool.add(free)
    waits.result(10)
    assert len(free.has(1)) == 1, "the worker that has come is not reserved"
    busy.answer(busy.handed[1])
    hand_over(3).result(10)
    assert len(busy.has(3)) == 3, "it is like any other again"
    busy.close(), free.close()
    assert len(ended) == 4


def test_a_job_alone_whose_worker_goes_before_it_began_gets_another() -> None:
    busy = FakeWorker(held)
    pool, ended = WorkerPool([busy]), list[object]()
    first, alone = (request(Submission.of(f"# {n}\n", "py", author="ada"), f"{n:016x}") for n in range(2))
    pool.hand_over(first, lambda *_: None)
    thread = later(lambda: pool.hand_over(alone, lambda *_: ended.append(1), alone=True))
    until(lambda: pool._reserved == [busy])
    pool.add(another := FakeWorker())
    pool.remove(busy)
    thread.result(10)
    assert (len(busy.handed), len(another.handed), ended) == (1, 1, [1])
    busy.close()


def test_progress_is_reported_to_the_caller_that_requested_it() -> None:
    worker, steps = FakeWorker(held), list[Progress]()
    asked = request(Submission.of("# 1\n", "py", author="ada"), progress=True)
    WorkerPool([worker]).hand_over(asked, lambda *_: None, steps.append)
    worker.step(asked, step := Progress(Stage.TEST, 1, 3, "small"))
    assert steps == [step]
    worker.answer(asked)
