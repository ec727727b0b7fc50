"""A server's parts over a temporary project, without HTTP: a clock that tests move, accounts, tokens and workers.

`conftest.py` of the tests of the service imports the fixtures.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from sqlalchemy import Connection, select

from kernelmark.project.project import Project
from kernelmark.server.accounts import accounts, tokens
from kernelmark.server.accounts.names import TakenNames
from kernelmark.server.accounts.principal import SCOPES, Principal
from kernelmark.server.app import create_app
from kernelmark.server.clock import Clock
from kernelmark.server.database import migrations, tables
from kernelmark.server.database.database import Database
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.service.accounts import AccountRole

START_NS = 1_790_000_000_000_000_000  # in September of 2026
SECOND_NS = 1_000_000_000
NO_NAMES = TakenNames(frozenset(), frozenset())
PROBLEM = """\
title = "Twice"
entry = "twice"
parameters = ["n"]
tensors = [
  { name = "x", role = "input", shape = ["n"], dtype = "float32" },
  { name = "out", role = "output", shape = ["n"], dtype = "float32" },
]
tests = [{ name = "small", params = { n = 17 } }, { name = "hidden size", params = { n = 31 }, hidden = true }]
benchmarks = [{ name = "usual", params = { n = 4096 } }]

[cost]
bytes = "8 * n"
flops = "n"
"""
REFERENCE = "def reference(x):\n    return x + x\n"


class FakeClock(Clock):
    """Both clocks stand until a test moves them."""

    def __init__(self) -> None:
        self.now, self.monotonic = START_NS, 0

    def now_ns(self) -> int:
        return self.now

    def monotonic_ns(self) -> int:
        return self.monotonic

    def pass_s(self, seconds: float) -> None:
        """Move both clocks on."""
        self.now += round(seconds * SECOND_NS)
        self.monotonic += round(seconds * SECOND_NS)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def service(tmp_path: Path, clock: FakeClock) -> Iterator[Service]:
    """A service of a project with the problem `twice`, nobody in it, and nothing recorded."""
    made = make_service(make_project(tmp_path / "project"), clock)
    with closing(made.database):
        yield made


def make_project(root: Path, settings: str = "") -> Project:
    """A project with one problem, and these settings."""
    for folder in ("problems/twice", "leaderboard/results", ".kernelmark/server"):
        (root / folder).mkdir(parents=True)
    (root / "kernelmark.toml").write_text(settings)
    (root / "problems/twice/problem.toml").write_text(PROBLEM)
    (root / "problems/twice/reference.py").write_text(REFERENCE)
    return Project(root)


def make_service(project: Project, clock: Clock) -> Service:
    """A service of a project, whose database is made if there is none. Its database must be closed."""
    path = project.root / ".kernelmark/server/server.db"
    migrations.upgrade(path)
    service = Service(project, Database(path), clock=clock)
    service.files.refresh(service.database)
    return service


def make_token(service: Service, name: str = "ada", role: AccountRole = "participant", team: str | None = None) -> str:
    """The secret of a token with all scopes of its role, of an account that is made if there is none of this name."""
    now_ns = service.clock.now_ns()

    def made(connection: Connection) -> str:
        found = connection.execute(select(tables.accounts.c.id).where(tables.accounts.c.name == name)).scalar()
        account = found or accounts.make(connection, now_ns, name, role, team, NO_NAMES)
        return tokens.make(connection, now_ns, "client", account=account, scopes=SCOPES[role])

    return service.database.write(made).result()


def make_worker_token(service: Service, name: str = "gpu1") -> str:
    """The secret of a worker's token."""
    now_ns = service.clock.now_ns()
    return service.database.write(lambda c: tokens.make(c, now_ns, "worker", worker=name)).result()


def principal_of(service: Service, secret: str) -> Principal:
    """Whom a token belongs to; it must count."""
    with service.database.read() as connection:
        found = tokens.authenticate(connection, secret, service.clock.now_ns())
    assert found is not None
    return found


def make_principal(
    service: Service, name: str = "ada", role: AccountRole = "participant", team: str | None = None
) -> Principal:
    """An account with a token of all scopes of its role."""
    return principal_of(service, make_token(service, name, role, team))


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """Serve the routes on a port of this machine, in a thread; yields the service as it is there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        local = f"127.0.0.1:{listening.getsockname()[1]}"
        served = replace(service, url=f"http://{local}", local=local)
        recorder = Recorder(served)
        recorder.ready.set()
        config = uvicorn.Config(create_app(served, recorder), log_config=None, lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield served
        finally:
            served.changes.close()
            server.should_exit = True
            thread.join()
            recorder.close()
