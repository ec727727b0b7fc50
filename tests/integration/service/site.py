"""A served project whose gradings a test brings into any state, and keeps there while it kills the server.

Nothing of the server is changed for that. What it does between two steps is stopped from outside: who holds the lock
of the ledger's file keeps an answered grading from being appended, and who holds the database's write lock keeps an
appended one from being marked.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.service.clients import send
from benchmarks.service.connection import Connection
from benchmarks.service.fake_worker import FakeWorker, hashes
from benchmarks.service.served import SLUG, Server
from kernelmark.server.lock import DATABASE, FOLDER
from kernelmark.service.work import Heartbeat, HeartbeatResponse, HeldLease, Lease, TaskError

ENDS = {
    "queued": "recorded",
    "leased": "recorded",
    "graded": "recorded",
    "appended": "recorded",
    "recorded": "recorded",
    "done": "done",
    "cancelled": "cancelled",
    "failed": "failed",
}
"""Where a grading is when the server is killed, and its state once all work is done. `appended`: its verdict is in the
ledger, and the database does not know it yet."""
OURS = TaskError(fault="harness", error_class="DeviceError", what="the device is gone")


class Site:
    """A server with one participant and two workers, which claim and answer only when a test tells them to."""

    def __init__(self, root: Path) -> None:
        self.server = Server(root)
        self.server.begin()
        [self.token] = self.server.people(["ada"])
        names = ("one", "two")
        self.tokens = {name: self.server.worker_token(name) for name in names}
        self.workers = {
            name: FakeWorker(self.server.url, self.tokens[name], hashes(root / "problems", SLUG)) for name in names
        }
        for name in names:
            self.workers[name].hello(self.connection(name))
        self.leases: dict[str, Lease] = {}

    def connection(self, name: str = "ada") -> Connection:
        return Connection(self.server.url, self.tokens.get(name, self.token))

    def submit(self, mode: str = "submit") -> str:
        return send(self.connection(), self.token, mode=mode).run

    def claim(self, name: str = "one") -> str:
        """Let a worker claim one job; returns its run."""
        [lease] = self.workers[name].claim(self.connection(name), 1)
        self.leases[lease.task.run] = lease
        return lease.task.run

    def answer(self, run: str, name: str = "one", error: TaskError | None = None) -> None:
        self.workers[name].answer(self.connection(name), self.leases[run], error)

    def told(self, run: str, name: str = "one") -> tuple[str, ...]:
        """The leases that the server ends if this worker says that it holds that of the run."""
        held = (HeldLease(lease=self.leases[run].lease),)
        beat = Heartbeat(instance=self.workers[name].instance, held=held).model_dump_json().encode()
        return HeartbeatResponse.model_validate_json(self.connection(name).ask("POST", "worker/heartbeat", beat)).end

    def state(self, run: str) -> str:
        return str(json.loads(self.connection().ask("GET", f"submissions/{run}"))["state"])

    def wait(self, run: str, *states: str) -> str:
        """Wait until the grading is in one of these states."""
        wait_for(lambda: self.state(run) in states)
        return self.state(run)

    def work(self) -> None:
        """Claim and answer whatever there is."""
        while leases := self.workers["one"].claim(self.connection("one"), 8):
            for lease in leases:
                self.workers["one"].answer(self.connection("one"), lease)

    def in_ledger(self, run: str) -> int:
        return self.server.recorded()[run]

    @contextmanager
    def ledger_held(self) -> Iterator[None]:
        """Nobody can append meanwhile."""
        with self.server.ledger.path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def database_held(self) -> Iterator[None]:
        """Nothing can be committed meanwhile."""
        holder = sqlite3.connect(self.server.root / FOLDER / DATABASE, isolation_level=None, timeout=30)
        holder.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            holder.execute("ROLLBACK")
            holder.close()

    @contextmanager
    def reached(self, state: str) -> Iterator[str]:
        """A run that is in this state, and stays there within the block."""
        with ExitStack() as held:
            run = self.submit("check" if state == "done" else "submit")
            if state == "cancelled":
                self.connection().ask("DELETE", f"submissions/{run}")
            elif state != "queued":
                assert self.claim() == run
            if state == "failed":
                self.answer(run, error=OURS)
                assert self.claim("two") == run
                self.answer(run, "two", OURS)
            elif state in ("recorded", "done"):
                self.answer(run)
            elif state == "graded":
                held.enter_context(self.ledger_held())
                self.answer(run)
            elif state == "appended":
                with self.ledger_held():
                    self.answer(run)
                    self.wait(run, "graded")
                    held.enter_context(self.database_held())
                wait_for(lambda: self.in_ledger(run) == 1)
            self.wait(run, "graded" if state == "appended" else state)
            yield run


def wait_for(holds: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come to hold"
        time.sleep(0.05)
