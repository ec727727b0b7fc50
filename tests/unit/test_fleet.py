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
from harness.submission import Submission
from harness.verdict import SandboxName
from kernelmark.grading.fleet import Fleet, Job, JobResult, fleet
from kernelmark.grading.fleet.messages import AHEAD
from tests.workers import FakeWorker, answered, held, job, keys, soon

pytestmark = pytest.mark.usefixtures("no_thread_stays")
Made = Callable[..., Fleet]


@pytest.fixture
def made(competition: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    def made(*workers: FakeWorker, sandbox: SandboxName = "bwrap", **given: Any) -> Fleet:
        monkeypatch.setattr(fleet, "local_workers", lambda *_: list(workers))
        usable = SimpleNamespace(name=sandbox, unavailable=lambda: None)
        monkeypatch.setattr(fleet, "providers", lambda _: [usable])
        return Fleet(sandbox=sandbox, **given)

    return made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "mars"}, "mars is neither HOST:PORT nor an address file"),
        ({"slots": 0}, "slots=0 is not a number of jobs"),
        ({"sandbox": "process"}, "the sandbox process does not isolate"),
        ({"device": "cuda"}, "needs a GPU, and torch finds none here"),
    ],
)
def test_what_a_fleet_cannot_be_is_refused(
    made: Made, given: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelmark.project.choice.cuda_is_here", lambda: False)
    with pytest.raises(UsageError, match=message):
        made(FakeWorker(), **given)


def test_a_fleet_tells_what_it_has_done(made: Made) -> None:
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
    with pytest.raises(UsageError, match="Fleet is closed"):
        next(workers.grade_many([job(1)]))


async def some(*numbers: int) -> AsyncIterator[Job]:
    for number in numbers:
        await asyncio.sleep(0)
        yield job(number)


def test_jobs_of_an_async_iterable_are_graded_beside_other_tasks(made: Made) -> None:
    async def main() -> tuple[list[object], list[object], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.001)
                beats += 1

        beating = asyncio.create_task(beat())
        with made(FakeWorker(slots=2)) as workers:
            one = [result async for result in workers.agrade_many(some(*range(30)))]
            two = [result async for result in workers.agrade_many(map(job, range(30, 40)), record=False)]
        beating.cancel()
        return keys(one), keys(two), beats

    one, two, beats = soon(lambda: asyncio.run(main()))
    assert (sorted(one), sorted(two)) == (list(range(30)), list(range(30, 40)))  # type: ignore[type-var]
    assert beats >= 5


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
        for _ in range(100):  # the loop lives on
            if closed.is_set():
                break
            await asyncio.sleep(0.01)
        workers.close()

    soon(lambda: asyncio.run(main()), 30)
    assert closed.is_set() == ("async" in source)


def test_each_of_many_tasks_gets_the_result_of_its_own_job(made: Made) -> None:
    worker = FakeWorker(held, slots=2)

    async def main() -> list[JobResult]:
        with made(worker) as workers:
            tasks = [asyncio.create_task(workers.agrade(job(number), effort="screen")) for number in range(30)]
            requests = list(await asyncio.to_thread(worker.has, 2 + AHEAD))  # no more than there is room for
            worker.act = answered
            worker.answer(*requests)
            results = await asyncio.gather(*tasks)
            assert workers.status().done == 30
        return results

    results = soon(lambda: asyncio.run(main()))
    assert keys(results) == list(range(30))
    own = [Submission.of(f"# {number}\n", "py", author="ada").sha256 for number in range(30)]
    assert [result.verdict and result.verdict.submission.sha256 for result in results] == own
    assert {request.effort for request in worker.handed} == {"screen"}
