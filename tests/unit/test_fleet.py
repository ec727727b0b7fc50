"""A fleet with workers that grade nothing: its arguments, its status, and its results for `async for`."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.files.kept import Kept
from harness.verdict import Outcome, SandboxName
from kernelmark.grading.fleet import Fleet, Job, JobResult, judges, reuse
from kernelmark.grading.fleet.messages import AHEAD, JobAnswer, JobRequest
from kernelmark.project.project import Project
from tests.verdicts import failed
from tests.workers import FakeWorker, answered, held, job, keys, soon, until

pytestmark = pytest.mark.usefixtures("no_thread_stays")
Made = Callable[..., Fleet]


@pytest.fixture
def made(competition: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    def made(*workers: FakeWorker, sandbox: SandboxName = "bwrap", **options: Any) -> Fleet:
        monkeypatch.setattr(judges, "local_workers", lambda *_, **__: list(workers))
        usable = SimpleNamespace(name=sandbox, unavailable=lambda: None)
        monkeypatch.setattr(judges, "providers", lambda _: [usable])
        return Fleet(sandbox=sandbox, **options)

    return made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "mars"}, "mars is neither HOST:PORT nor an address file"),
        ({"slots": 0}, "slots=0 is not a number of jobs"),
        ({"devices": 0}, "devices=0 is not a number of devices"),
        ({"device": "tpu"}, "'tpu' is not valid"),
        ({"project": "/course"}, "'/course' is not a Project"),
        ({"sandbox": "process"}, "the sandbox process does not isolate"),
        ({"device": "cuda"}, "needs a GPU, and torch finds none here"),
    ],
)
def test_bad_fleet_settings_are_refused(made: Made, given: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelmark.project.choice.cuda_is_here", lambda: False)
    with pytest.raises(UsageError, match=message):
        made(FakeWorker(), **given)


def test_outside_of_a_project_there_is_no_fleet(made: Made, competition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = competition.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(UsageError, match="is not in a project"):
        made(FakeWorker())
    with made(FakeWorker(), project=Project(competition)) as workers:
        assert soon(lambda: [result.error for result in workers.grade_many([job(1)])]) == [None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"effort": "most"}, "'most' is not valid"),
        ({"baselines": "eager"}, "baselines: 'eager' is a string; give a list of names"),
        ({"reuse": "always"}, "reuse: 'always' is not valid"),
        ({"reuse": "disk", "record": True}, '"disk" is for what one machine grades without a record'),
    ],
)
def test_invalid_arguments_of_a_call_are_refused_before_any_job(made: Made, given: Any, message: str) -> None:
    with made(worker := FakeWorker()) as workers:
        with pytest.raises(UsageError, match=message):
            workers.grade_many([job(1)], **given)
        with pytest.raises(UsageError, match=message):
            asyncio.run(workers.agrade(job(1), **given))
    assert worker.handed == []


def test_a_closed_fleet_refuses_every_call(made: Made) -> None:
    async def results(workers: Fleet) -> list[JobResult]:
        return [result async for result in workers.agrade_many([job(1)])]

    workers = made(FakeWorker())
    workers.close()
    for call in (
        workers.start,
        lambda: workers.grade_many([job(1)]),
        lambda: workers.check_many([job(1)]),
        lambda: asyncio.run(workers.agrade(job(1))),
        lambda: asyncio.run(workers.acheck(job(1))),
        lambda: asyncio.run(results(workers)),
    ):
        with pytest.raises(UsageError, match="Fleet is closed; grade inside its `with` block"):
            call()


def test_a_forked_process_cannot_use_the_fleet_of_its_parent(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(FakeWorker()) as workers:
        assert soon(lambda: [result.error for result in workers.grade_many([job(1)])]) == [None]
        monkeypatch.setattr("kernelmark.grading.fleet.fleet.os.getpid", lambda: 1)
        for call in (workers.start, lambda: workers.grade_many([job(2)]), lambda: asyncio.run(workers.agrade(job(3)))):
            with pytest.raises(UsageError, match="was started by the process that this one was forked from"):
                call()
        monkeypatch.undo()


def test_closing_ends_calls_that_wait_with_an_error_of_ours(made: Made) -> None:
    """Not with what looks as if the caller's task was cancelled: neither those that run, nor those behind them."""
    worker = FakeWorker(held)

    async def main() -> list[JobResult | BaseException]:
        workers = made(worker)
        tasks = [asyncio.create_task(workers.agrade(job(number))) for number in range(3 + AHEAD)]
        await asyncio.to_thread(worker.has, 1 + AHEAD)
        await asyncio.to_thread(workers.close)
        return await asyncio.gather(*tasks, return_exceptions=True)

    ended = soon(lambda: asyncio.run(main()))
    assert [str(one.error) for one in ended if isinstance(one, JobResult)] == ["the fleet was closed"] * (1 + AHEAD)
    assert [type(one) for one in ended if not isinstance(one, JobResult)] == [UsageError] * 2


def test_a_call_that_is_cancelled_ends_its_grading(made: Made) -> None:
    worker = FakeWorker(held)

    async def main() -> int:
        with made(worker) as workers:
            waiting = asyncio.create_task(workers.agrade(job(0)))
            tasks = [asyncio.create_task(workers.agrade(job(number))) for number in range(1, 3)]
            requests = list(await asyncio.to_thread(worker.has, 3))
            [mine] = [request for request in requests if request.submission.source == b"# 0\n"]
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            late = asyncio.create_task(workers.acheck(job(7)))
            await asyncio.to_thread(worker.has, 4)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(late, 0.2)
            await asyncio.to_thread(until, lambda: len(worker.cancelled) == 2)
            assert worker.cancelled[0] == mine.run
            worker.answer(*(request for request in requests if request is not mine))
            assert [result.error for result in await asyncio.gather(*tasks)] == [None, None]
            status = workers.status()
            assert (status.done, status.in_flight, status.lost) == (2, 0, 0)
        return len(worker.handed)

    assert soon(lambda: asyncio.run(main())) == 4


def test_one_job_is_checked_without_times(made: Made) -> None:
    with made(worker := FakeWorker()) as workers:
        result = soon(lambda: asyncio.run(workers.acheck(job(1))))
    assert (result.verdict, result.check is not None, worker.handed[0].timed) == (None, True, False)


def test_an_answer_is_reused_in_later_calls_of_a_fleet_that_ask_for_it(made: Made, competition: Path) -> None:
    baseline = competition / "reference/double/eager.py"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("# one\n")

    async def one(workers: Fleet, **how: Any) -> JobResult:
        return await workers.agrade(job(1, author="ada"), **how)

    with made(worker := FakeWorker()) as workers:
        calls = {
            "first": {"reuse": "run"},
            "the same": {"reuse": "run"},
            "without": {},
            "another effort": {"reuse": "run", "effort": "screen"},
            "other baselines": {"reuse": "run", "baselines": ["eager"]},
            "the same baselines": {"reuse": "run", "baselines": ["eager"]},
        }
        got = {name: soon(lambda how=how: asyncio.run(one(workers, **how))) for name, how in calls.items()}
        [got["in a batch"]] = soon(lambda: list(workers.grade_many([job(1, author="bob")], reuse="run")))
        baseline.write_text("# two\n")
        got["changed"] = soon(lambda: asyncio.run(one(workers, **calls["other baselines"])))
        [got["checked"]] = soon(lambda: list(workers.check_many([job(1)], reuse="run")))
    copies = [name for name, result in got.items() if result.duplicate]
    assert copies == ["the same", "the same baselines", "in a batch"]
    assert {name: result.tries for name, result in got.items()} == {name: int(name not in copies) for name in got}
    assert len(worker.handed) == len(got) - len(copies)
    assert got["in a batch"].verdict.submission.author == "bob"
    assert got["in a batch"].verdict.run != got["first"].verdict.run


def test_answers_on_disk_outlive_their_fleet(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(reuse, "choose_provider", lambda _: SimpleNamespace(name="bwrap", image_digest=lambda: None))

    def copied(number: int = 1, **how: Any) -> list[bool]:
        with made(FakeWorker()) as workers:
            return [result.duplicate for result in soon(lambda: list(workers.grade_many([job(number)], **how)))]

    assert copied(reuse="disk") == [False]
    assert copied(reuse="disk") == [True]
    kept = Kept(tmp_path / "cache/kernelmark", 1 << 20)
    [answer] = kept.folder.iterdir()
    kept.put(answer.name, b'{"answer": "of another version"}')
    assert copied(reuse="disk") == [False]
    assert copied(reuse="disk") == [True]
    assert copied(reuse="run") == copied() == [False]
    assert copied(2, reuse="disk") == [False]
    calibration = SimpleNamespace(model_dump_json=lambda: "another roof")
    with monkeypatch.context() as calibrated:
        calibrated.setattr(reuse, "stored", lambda _: [calibration])
        assert copied(reuse="disk") == [False]
    monkeypatch.setattr(reuse, "device_name", lambda _: "another CPU")
    assert copied(reuse="disk") == [False]
    assert copied(reuse="disk") == [True]
    monkeypatch.setenv("KERNELMARK_CACHE_BYTES", "0")
    assert copied(reuse="disk") == [False]


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.MEMORY_LIMIT, Outcome.WRONG_ANSWER])
def test_outcomes_that_a_busy_machine_may_cause_are_not_cached(
    outcome: Outcome, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(reuse, "choose_provider", lambda _: SimpleNamespace(name="bwrap", image_digest=lambda: None))

    def act(request: JobRequest) -> JobAnswer:
        return JobAnswer(run=request.run, verdict=failed(outcome, problem="double", run=request.run))

    def copied() -> list[bool]:
        with made(FakeWorker(act)) as workers:
            same = [job(1), job(1)]
            return [result.duplicate for result in soon(lambda: list(workers.grade_many(same, reuse="disk")))]

    lasts = outcome is Outcome.WRONG_ANSWER
    assert copied() == [False, True]
    assert copied() == [lasts, True]


def test_a_fleet_reports_its_status(made: Made) -> None:
    one, two = FakeWorker(held, name="NVIDIA H100"), FakeWorker(name="NVIDIA H200", slots=2)
    with made(one, two) as workers:
        results = workers.grade_many(map(job, range(5)), effort="screen", baselines=())
        assert soon(lambda: next(results)).device == "NVIDIA H200"
        [request] = one.has(1)
        assert (request.effort, request.baselines) == ("screen", ())
        status = workers.status()
        assert (status.done, status.in_flight, status.by_device) == (4, 1, {"NVIDIA H200": 4})
        assert status.a_minute == pytest.approx(60 * 4 / status.seconds)
        one.answer(request)
        soon(lambda: list(results))
        assert workers.status().by_device == {"NVIDIA H200": 4, "NVIDIA H100": 1}
    assert (one.closed, two.closed) == (True, True)


async def some(*numbers: int) -> AsyncIterator[Job]:
    for number in numbers:
        await asyncio.sleep(0)
        yield job(number)


def test_jobs_of_an_async_iterable_are_graded_while_other_tasks_run(made: Made) -> None:
    async def main() -> tuple[list[object], list[object]]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.001)
                beats += 1

        def act(request: JobRequest) -> JobAnswer:
            before = beats
            until(lambda: beats > before)  # the loop is not waiting for this
            return answered(request)

        beating = asyncio.create_task(beat())
        with made(FakeWorker(act, slots=2)) as workers:
            one = [result async for result in workers.agrade_many(some(*range(30)))]
            two = [result async for result in workers.agrade_many(map(job, range(30, 40)), record=False)]
        beating.cancel()
        return keys(one), keys(two)

    one, two = soon(lambda: asyncio.run(main()))
    assert (sorted(one), sorted(two)) == (list(range(30)), list(range(30, 40)))  # type: ignore[type-var]


def test_many_batches_of_one_loop(made: Made) -> None:
    """More than `asyncio.to_thread` has threads."""

    async def main() -> list[list[object]]:
        with made(FakeWorker(slots=2)) as workers:

            async def one(first: int) -> list[object]:
                return keys([result async for result in workers.agrade_many(some(*range(first, first + 3)))])

            return await asyncio.gather(*(one(100 * number) for number in range(50)))

    batches = soon(lambda: asyncio.run(main()))
    assert [sorted(batch) for batch in batches] == [  # type: ignore[type-var]
        list(range(100 * number, 100 * number + 3)) for number in range(50)
    ]


def test_what_an_async_iterable_raises_reaches_the_caller(made: Made) -> None:
    async def jobs() -> AsyncIterator[Job]:
        yield job(1)
        raise LookupError("no more answers")

    async def main() -> None:
        with made(FakeWorker()) as workers:
            async for _ in workers.agrade_many(jobs()):
                pass

    with pytest.raises(LookupError, match="no more answers"):
        soon(lambda: asyncio.run(main()))


@pytest.mark.parametrize("source", ["iterable", "async iterable", "async iterable that waits"])
@pytest.mark.parametrize("leave", ["cancelled", "break"])
def test_leaving_early_ends_the_batch_and_not_the_loop(made: Made, source: str, leave: str) -> None:
    """Although a thread waits for a result that will not come, and perhaps another for a job."""
    closed = threading.Event()

    async def jobs() -> AsyncIterator[Job]:
        try:
            for number in itertools.count():
                yield job(number)
                if source.endswith("waits") and number == 1:
                    await asyncio.Event().wait()
        finally:
            closed.set()

    async def main() -> None:
        worker = FakeWorker(held)
        workers = made(worker)

        async def consume() -> None:
            async for result in workers.agrade_many(jobs() if "async" in source else map(job, itertools.count())):
                assert result.job.key == 0
                if leave == "break":
                    return

        task = asyncio.create_task(consume())
        while not worker.handed:
            await asyncio.sleep(0.005)
        worker.answer(worker.handed[0])
        await asyncio.sleep(0.1)
        if leave == "cancelled":
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await task
        await asyncio.sleep(0.01)  # the loop lives on
        while "async" in source and not closed.is_set():
            await asyncio.sleep(0.01)
        workers.close()

    soon(lambda: asyncio.run(main()))
    assert closed.is_set() == ("async" in source)
