"""Daily limits in a fleet that records: jobs in flight count, and unrecorded ones are given back."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import LedgerError
from kernelmark.grading import recorder
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, WorkerLost
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.record.allowance import InFlight
from tests.unit.conftest import recorded
from tests.workers import FakeWorker, answered, batch, graded, held, job, soon

pytestmark = pytest.mark.usefixtures("competition", "no_thread_stays")


@pytest.fixture(autouse=True)
def _one_a_day(competition: Path) -> None:
    with (competition / "kernelmark.toml").open("a") as settings:
        settings.write('[limits]\ngradings_a_day = 1\n[teams]\nquick = ["ada", "bob"]\n')


def today(request: JobRequest) -> JobAnswer:
    """An accepted verdict of now."""
    answer = answered(request)
    return answer.model_copy(update={"verdict": answer.verdict.model_copy(update={"created_at": datetime.now(UTC)})})


def refused(results: list[JobResult]) -> list[object]:
    """The keys of those that a limit refused; the others were recorded."""
    over = [result for result in results if "1 of 1 gradings" in str(result.error)]
    assert all(result.error is None for result in results if result not in over)
    return sorted(result.job.key for result in over)  # type: ignore[type-var]


def test_several_of_one_author_in_flight_are_one_too_many(competition: Path) -> None:
    jobs = [*(job(number, author="zoe") for number in range(5)), job(5, author="ada"), job(6, author="bob")]
    worker = FakeWorker(held, slots=8)
    results = batch(worker, record=True).run(jobs)
    got = [soon(lambda: next(results)) for _ in range(5)]
    assert refused(got) == [1, 2, 3, 4, 6], "while the first of each is in flight; a team shares its limit"
    for request in worker.has(2):
        worker.end(request, today(request))
    assert [result.error for result in soon(lambda: list(results))] == [None, None]
    assert sorted(verdict.submission.author for verdict in recorded(competition)) == ["ada", "zoe"]
    assert refused(graded(FakeWorker(today), [job(7, author="zoe")], record=True)) == [7], "now by the record"


def test_batches_of_one_fleet_know_of_each_other(competition: Path) -> None:
    plan, in_flight = WorkerPool([FakeWorker(today, slots=4)]), InFlight()
    barrier = threading.Barrier(4)

    def one(number: int) -> JobResult:
        barrier.wait(10)
        [result] = batch(plan=plan, record=True, in_flight=in_flight).run([job(number, author="zoe")])
        return result

    with ThreadPoolExecutor(4) as callers:
        results = list(callers.map(one, range(4)))
    assert len(refused(results)) == 3
    assert len(recorded(competition)) == 1


@pytest.mark.parametrize("ended", ["ours", "lost", "unrecorded"])
def test_unrecorded_jobs_return_their_allowance(competition: Path, monkeypatch: pytest.MonkeyPatch, ended: str) -> None:
    real, failures = recorder.record, [LedgerError("the disk is full")]

    def record(*arguments: object) -> object:
        if ended == "unrecorded" and failures:
            raise failures.pop()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recorder, "record", record)
    tried: list[bytes] = []

    def act(request: JobRequest) -> JobAnswer | WorkerLost:
        tried.append(request.submission.source)
        if request.submission.source == b"# 1\n" and ended == "ours":
            return JobAnswer(run=request.run, error="no daemon", error_class="SandboxError")
        return WorkerLost("it ended") if request.submission.source == b"# 1\n" and ended == "lost" else today(request)

    queued_jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    results = batch(FakeWorker(act), record=True).run(iter(queued_jobs.get, None))
    queued_jobs.put(job(1, author="zoe"))
    first = soon(lambda: next(results))
    assert first.error is not None
    assert "1 of 1 gradings" not in str(first.error)
    queued_jobs.put(job(2, author="zoe"))
    assert soon(lambda: next(results)).error is None
    queued_jobs.put(job(3, author="zoe"))
    assert refused([soon(lambda: next(results))]) == [3]
    queued_jobs.put(None)
    assert soon(lambda: list(results)) == []
    assert len(recorded(competition)) == 1


def test_an_abandoned_batch_holds_no_allowance(competition: Path) -> None:
    plan, in_flight = WorkerPool([FakeWorker(held, slots=4)]), InFlight()
    given_up = batch(plan=plan, record=True, in_flight=in_flight).run([job(1, author="zoe"), job(2, author="zoe")])
    assert refused([soon(lambda: next(given_up))]) == [2]
    given_up.close()  # type: ignore[attr-defined]  # a generator
    plan.close()
    again = batch(FakeWorker(today), record=True, in_flight=in_flight).run([job(3, author="zoe")])
    assert [result.error for result in soon(lambda: list(again))] == [None]


def test_duplicates_and_unrecorded_jobs_use_no_allowance(competition: Path) -> None:
    run = "a" * 16
    twice = [job(1, author="zoe", run=run), job(1, author="zoe")]
    first, second = graded(FakeWorker(today), twice, record=True)
    assert (first.error, second.error, second.duplicate) == (None, None, True)
    [again] = graded(FakeWorker(today), [job(1, author="zoe", run=run)], record=True)
    assert (again.error, again.verdict and again.verdict.run) == (None, run)
    assert refused(graded(FakeWorker(today), [job(number, author="zoe") for number in range(3)])) == []
