"""A worker in this process, over judges that grade nothing, and a server that the test plays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.problem.load import identify
from kernelmark.grading.fleet.pool import WorkerPool
from kernelmark.worker import worker as module
from kernelmark.worker.checkout import Checkout
from kernelmark.worker.worker import ServerWorker
from tests.fake_server import Document, FakeServer, lease_of
from tests.workers import FakeWorker


class FakeJudges:
    """Judges of one device, which grade nothing."""

    sandbox = "bwrap"

    def __init__(self, *workers: FakeWorker) -> None:
        self.workers, self.pool = workers, WorkerPool(workers)

    def start(self) -> None: ...

    def close(self) -> None:
        self.pool.close()
        for worker in self.workers:
            worker.close()


class Running:
    """A worker that runs in a thread; `wait` gives what its `run` raised."""

    def __init__(self, origin: str, root: Path, judges: FakeJudges) -> None:
        self.worker = ServerWorker(origin, "kmw_secret", Checkout(root, device="cpu", sandbox="bwrap"), judges)  # type: ignore[arg-type]
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            self._error = error

    def wait(self, within_s: float = 20) -> BaseException | None:
        self._thread.join(within_s)
        assert not self._thread.is_alive()
        return self._error

    def stop(self) -> BaseException | None:
        self.worker.stop()
        return self.wait()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().serving() as server:
        yield server


Started = Callable[..., Running]


@pytest.fixture
def started(server: FakeServer, competition: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """Starts a worker for the server with these judges, by default one that answers at once."""
    made: list[Running] = []
    monkeypatch.setattr(module, "_ALIVE_S", 0.1)
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(module, "_LEAST_S", 0.02)

    def start(*workers: FakeWorker) -> Running:
        made.append(Running(server.origin, competition, FakeJudges(*(workers or (FakeWorker(),)))))
        return made[-1]

    yield start
    for running in made:
        running.stop()


@pytest.fixture
def lease(competition: Path) -> Callable[..., Document]:
    """A lease of a task for `double` as it is here."""

    def lease(text: str = "# right\n", number: int = 1, **task: Any) -> Document:
        return lease_of(text, number, **{"problem_sha256": identify(competition / "problems/double"), **task})

    return lease
