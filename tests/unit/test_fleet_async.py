"""A fleet under an event loop, with workers that answer when the test lets them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import pytest

from harness.verdict import Outcome
from kernelmark.grading.fleet import Fleet, Job, JobResult
from kernelmark.grading.fleet import fleet as module
from kernelmark.grading.fleet.messages import AHEAD, JobAnswer, JobRequest, WorkerLost
from kernelmark.grading.fleet.process import WorkerProcess
from tests.verdicts import failed


class HeldWorker:
    """Answers nothing until `answer` is called; then all that it was given, and all that comes later, at once."""

    slots = 2

    def __init__(self) -> None:
        self.asked: list[JobRequest] = []
        self._lock, self._held, self._open = threading.Lock(), list[tuple[JobRequest, Future[JobAnswer]]](), False

    def start(self) -> None:
        pass

    def device(self) -> str:
        return "held"

    def submit(self, request: JobRequest) -> Future[JobAnswer]:
        future: Future[JobAnswer] = Future()
        with self._lock:
            self.asked.append(request)
            self._held.append((request, future))
        self._release()
        return future

    def answer(self) -> None:
        self._open = True
        self._release()

    def close(self) -> None:
        self.answer()

    def _release(self) -> None:
        while self._open:
            with self._lock:
                if not self._held:
                    return
                request, future = self._held.pop()
            verdict = failed(Outcome.WRONG_ANSWER, run=request.run, message=request.source)
            future.set_result(JobAnswer(run=request.run, verdict=verdict))


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, project: Path) -> HeldWorker:
    held = HeldWorker()
    monkeypatch.setattr(module, "local_workers", lambda *_: [held])
    monkeypatch.setattr(module, "_isolated", lambda _: "bwrap")
    return held


@pytest.fixture
def fleet(worker: HeldWorker) -> Iterator[Fleet]:
    with Fleet() as opened:
        yield opened


def job(number: int) -> Job:
    return Job(problem="double", submission=f"x = {number}", key=number)


async def asked(worker: HeldWorker, jobs: int) -> None:
    """Wait until the worker was given so many; it gets no more within a moment."""
    async with asyncio.timeout(10):
        while len(worker.asked) < jobs:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert len(worker.asked) == jobs


def test_each_of_many_tasks_gets_the_result_of_its_own_job(worker: HeldWorker, fleet: Fleet) -> None:
    async def graded() -> list[JobResult]:
        tasks = [asyncio.create_task(fleet.agrade(job(number), effort="screen")) for number in range(30)]
        await asked(worker, HeldWorker.slots + AHEAD)  # no more than there is room for
        worker.answer()
        return await asyncio.gather(*tasks)

    results = asyncio.run(graded())
    said = [(result.job.key, result.verdict and result.verdict.message) for result in results]
    assert said == [(number, f"x = {number}") for number in range(30)]
    assert {request.effort for request in worker.asked} == {"screen"}
    assert fleet.status().done == 30


def test_a_cancelled_loop_over_results_ends_as_cancelled(worker: HeldWorker, fleet: Fleet) -> None:
    async def cancelled() -> None:
        async def use() -> None:
            async for _ in fleet.agrade_many([job(1)]):
                pass

        task = asyncio.create_task(use())
        await asked(worker, 1)
        task.cancel()
        with suppress(asyncio.CancelledError, ValueError):
            await task
        worker.answer()  # or the loop would wait for the thread that waits for it
        assert task.cancelled()

    asyncio.run(cancelled())


def test_a_worker_that_was_closed_does_not_start_again(project: Path) -> None:
    closed = WorkerProcess(project, 1, {})
    closed.close()
    request = JobRequest(
        run="0" * 16, problem="double", problem_sha256="0" * 64, name="kernel.py", author="ada", language="py",
        source="x = 1", effort="quick", baselines=(), device="cpu", sandbox="bwrap",
    )  # fmt: skip
    assert isinstance(closed.submit(request).exception(timeout=10), WorkerLost)
