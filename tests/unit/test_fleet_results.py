"""A fleet's results: copies for duplicates, verdicts that are recorded once, and those of an earlier run."""

from __future__ import annotations

import queue
from pathlib import Path

import pytest

from harness.errors import LedgerError, UsageError
from harness.problem import load
from harness.submission import Submission
from kernelmark.grading import recorder
from kernelmark.grading.fleet import reuse
from kernelmark.grading.fleet.job import Job
from tests.unit.conftest import recorded
from tests.workers import FakeWorker, batch, graded, held, job, later, lost_times, soon

pytestmark = pytest.mark.usefixtures("competition", "no_thread_stays")


def test_a_source_is_graded_once_while_and_after_it_is() -> None:
    worker = FakeWorker(held)
    named = Job(problem="double", submission=Submission(name="own.py", author="eve", language="py", source=b"# 1\n"))
    jobs = [job(1, author="ada"), job(1, author="bob", run="b" * 16), named, job(2), job(1, author="zoe")]
    results = batch(worker).run(jobs)
    waiting = later(next, results)
    one, two = worker.has(2)
    worker.answer(one)
    got = [waiting.result(10)]
    worker.answer(two)
    got += soon(lambda: list(results))
    same = [result for result in got if result.job.key != 2]
    assert [result.duplicate for result in same] == [False, True, True, True]
    verdicts = [result.verdict for result in same if result.verdict]
    assert [(v.submission.author, v.submission.name) for v in verdicts] == [
        ("ada", one.submission.name), ("bob", one.submission.name), ("eve", "own.py"), ("zoe", one.submission.name),
    ]  # fmt: skip
    assert len({v.run for v in verdicts}) == 4
    assert verdicts[1].run == "b" * 16
    assert len({v.score for v in verdicts}) == 1
    assert len(worker.handed) == 2


def test_another_language_or_problem_is_another_source(competition: Path) -> None:
    other = competition / "other"
    other.mkdir()
    for file in ("problem.toml", "reference.py"):
        (other / file).write_text((competition / "problems/double" / file).read_text() + "# other\n")
    jobs = [job(1), job(1, language="cpp"), Job(problem=other, submission="# 1\n"), Job(
        problem=load(other), submission="# 1\n")]  # fmt: skip
    worker = FakeWorker()
    results = graded(worker, jobs)
    assert [result.duplicate for result in results] == [False, False, False, True]
    assert [request.problem for request in worker.handed] == ["double", "double", str(other)]


def test_a_check_of_a_duplicate_has_its_own_author() -> None:
    worker = FakeWorker()
    one, two = graded(worker, [job(1, author="ada"), job(1, author="bob")], timed=False)
    assert [request.timed for request in worker.handed] == [False]
    assert (one.verdict, two.verdict, one.error, two.error) == (None,) * 4
    assert [each.check.submission.author for each in (one, two) if each.check] == ["ada", "bob"]
    assert two.duplicate


def test_an_error_is_not_kept_for_later_duplicates() -> None:
    act, tried = lost_times(3)
    queued_jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    results = batch(FakeWorker(act)).run(iter(queued_jobs.get, None))
    got = []
    for one in (job(1), job(1), None):
        queued_jobs.put(one)
        got += [soon(lambda: next(results))] if one else soon(lambda: list(results))
    assert [(result.error is None, result.duplicate) for result in got] == [(False, False), (True, False)]
    assert tried[b"# 1\n"] == 4


def test_only_so_many_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "KEPT", 3)
    worker = FakeWorker()
    queued_jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    results = batch(worker).run(iter(queued_jobs.get, None))
    copied = []
    for number in (0, 1, 2, 0, 3, 0, 1, 4, 5, 6, 0):  # 0 stays while it is asked for, until three others come
        queued_jobs.put(job(number))
        if soon(lambda: next(results)).duplicate:
            copied.append(number)
    queued_jobs.put(None)
    assert soon(lambda: list(results)) == []
    assert copied == [0, 0]
    assert [request.submission.source for request in worker.handed] == [
        b"# %d\n" % n for n in (0, 1, 2, 3, 1, 4, 5, 6, 0)
    ]


def test_each_result_is_recorded_once_by_its_author_and_name(competition: Path) -> None:
    worker = FakeWorker()
    named = Submission(name="b.py", author="ada", language="py", source=b"# 1\n")
    jobs = [job(1, author="ada"), job(1, author="ada"), job(1, author="bob"), Job(problem="double", submission=named)]
    results = graded(worker, jobs, record=True)
    assert [result.error for result in results] == [None] * 4
    assert [result.duplicate for result in results] == [False, True, False, False]
    runs = [result.verdict.run for result in results if result.verdict]
    assert runs[0] == runs[1], "one run, one line in the ledger"
    assert [verdict.run for verdict in recorded(competition)] == [runs[0], runs[2], runs[3]]
    assert all(result.table is not None for result in results), "a copy of a recorded verdict is on the board, too"
    assert (competition / "leaderboard/BOARD.md").exists()


def test_a_recorded_run_is_not_graded_again(competition: Path) -> None:
    jobs = [job(number, run=f"{number:016x}") for number in range(3)]
    first = graded(FakeWorker(), jobs[:2], record=True)
    worker = FakeWorker()
    again = {result.job.key: result for result in graded(worker, jobs, record=True)}
    assert [request.submission.source for request in worker.handed] == [b"# 2\n"]
    assert [again[number].verdict for number in range(2)] == [result.verdict for result in first]
    assert all(again[number].table is not None for number in range(2))
    assert [verdict.run for verdict in recorded(competition)] == [one.run for one in jobs]
    [other] = graded(worker, [job(9, run=jobs[0].run)], record=True)
    assert isinstance(other.error, UsageError)
    assert "is recorded for another source" in str(other.error)
    assert len(worker.handed) == 1
    assert len(recorded(competition)) == 3


def test_two_jobs_with_one_run_id_do_not_get_each_others_answers() -> None:
    worker = FakeWorker(held, slots=2)
    results = batch(worker).run([job(1, run="a" * 16), job(2, run="a" * 16)])
    refused = soon(lambda: next(results))
    assert refused.job.key == 2
    assert isinstance(refused.error, UsageError)
    worker.answer(*worker.has(1))
    [graded] = soon(lambda: list(results))
    assert graded.job.key == 1
    assert graded.verdict is not None


def test_an_unrecorded_verdict_comes_with_the_error(competition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = recorder.record, [LedgerError("the disk is full")]

    def record(*arguments: object) -> object:
        if failures:
            raise failures.pop()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recorder, "record", record)
    worker = FakeWorker(held, slots=2)
    results = batch(worker, record=True).run([job(1), job(1), job(2)])
    waiting = later(next, results)
    one, two = worker.has(2)
    worker.answer(one)
    got = [waiting.result(10), soon(lambda: next(results))]
    worker.answer(two)
    got += soon(lambda: list(results))
    assert [(result.job.key, str(result.error)) for result in got] == [
        (1, "the disk is full"), (1, "the disk is full"), (2, "None"),
    ]  # fmt: skip
    assert all(result.verdict for result in got)
    assert len(recorded(competition)) == 1


def test_a_job_that_may_not_be_recorded_is_not_graded(competition: Path) -> None:
    settings = competition / "problems/double/problem.toml"
    settings.write_text("deadline = 2020-01-01T00:00:00Z\n" + settings.read_text())
    worker = FakeWorker()
    [late] = graded(worker, [job(1)], record=True)
    assert isinstance(late.error, UsageError)
    assert "takes no more submissions, closed since" in str(late.error)
    assert worker.handed == []
