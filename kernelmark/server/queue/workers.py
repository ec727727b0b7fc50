"""The workers: which are connected, which problems they have, and when one is paused. `web.work` calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, select

from kernelmark import __version__
from kernelmark.server.database.database import after_commit
from kernelmark.server.database.tables import pins, workers
from kernelmark.server.queue import endings
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import HEARTBEAT_S, WORK_PROTOCOL, ProblemHashes, WorkerHello, WorkerWelcome

ALIVE_NS = round(2.5 * HEARTBEAT_S * 1e9)
"""For how long after its last message a worker counts as alive."""
_OWNERS_IN_A_ROW = 3
_UNFIT = "gradings of several owners failed there, and so did a kernel that is known to be good"
_PROBLEMS = TypeAdapter(dict[str, ProblemHashes])


class Version(NamedTuple):
    """A problem as a grading needs it: with or without final tests."""

    problem: str
    sha256: str
    final: bool


def hello(connection: Connection, service: Service, worker: str, message: WorkerHello) -> WorkerWelcome:
    """Register a worker that has started, or that has changed.

    The jobs that its earlier instance held are queued again.

    Raises:
        Refusal: another live instance has its name, or it cannot work for this server.
    """
    _refuse_incompatible(service, message)
    row = connection.execute(select(workers).where(workers.c.name == worker)).one_or_none()
    if row is not None and row.instance not in (None, message.instance):
        silent_ns = service.clock.monotonic_ns() - row.alive_ns if row.alive_ns is not None else ALIVE_NS
        if silent_ns < ALIVE_NS:
            what = "is connected already, from another start"
            again_s = -(-(ALIVE_NS - silent_ns) // 10**9)
            remedy = f"end the other one (if it was killed, wait {again_s} s), or give each worker its own token"
            raise Refusal(409, "second-worker", f"worker {worker}", what, remedy, retry_after_s=again_s)
    paused = row.paused if row is not None else ""
    if paused.startswith(_UNFIT) and not message.unfit:
        paused = ""
    elif not paused and message.unfit and row is not None and len(json.loads(row.faults)) >= _OWNERS_IN_A_ROW:
        paused = f"{_UNFIT}: {message.unfit}"
    problems = _PROBLEMS.dump_json(dict(sorted(message.problems.items()))).decode()
    values = {
        **message.model_dump(include={"instance", "version", "pool", "device", "sandbox", "devices", "slots"}),
        "problems": problems,
        "paused": paused,
        "seen_ns": service.clock.now_ns(),
        "alive_ns": service.clock.monotonic_ns(),
    }
    if row is None:
        connection.execute(workers.insert().values(name=worker, **values))
    else:
        connection.execute(workers.update().where(workers.c.name == worker).values(**values))
        endings.clear_refusals(connection, worker)
    endings.requeue_all(connection, service, worker, but=message.instance)
    after_commit(connection, lambda: service.changes.notify("queue", "jobs"))
    return WorkerWelcome(name=worker, paused=paused)


def forget_instance(connection: Connection, service: Service, worker: str) -> None:
    """Forget the worker's instance, which has ended: its jobs are queued again, and the next one may start at once."""
    connection.execute(workers.update().where(workers.c.name == worker).values(instance=None, alive_ns=None))
    endings.requeue_all(connection, service, worker)


def resume(connection: Connection, service: Service, worker: str) -> None:
    """Let a paused worker claim jobs again."""
    connection.execute(workers.update().where(workers.c.name == worker).values(paused="", faults="[]"))
    after_commit(connection, lambda: service.changes.notify("queue", "jobs", f"worker:{worker}"))


def check_instance(connection: Connection, service: Service, worker: str, instance: str) -> Row[Any]:
    """Check that a worker has said hello, note that it is alive, and return its row.

    Raises:
        Refusal: it has not message hello since its start, or another instance of its name has.
    """
    row = connection.execute(select(workers).where(workers.c.name == worker)).one_or_none()
    if row is None or row.instance != instance:
        raise Refusal(409, "hello-first", f"worker {worker}", "is not known from this start", "say hello first")
    now = {"seen_ns": service.clock.now_ns(), "alive_ns": service.clock.monotonic_ns()}
    if row.alive_ns is None or now["alive_ns"] - row.alive_ns > ALIVE_NS / 10:
        noted = workers.update().where(workers.c.name == worker).values(**now)
        row = connection.execute(noted.returning(workers)).one()
    return row


def alive(connection: Connection, service: Service) -> list[Row[Any]]:
    """The workers that have sent a message lately. Only reads."""
    since = service.clock.monotonic_ns() - ALIVE_NS
    return list(connection.execute(select(workers).where(workers.c.alive_ns >= since).order_by(workers.c.name)))


def mark_all_silent(connection: Connection) -> None:
    """Count no worker as alive: the server has started, and its monotonic clock may have, too."""
    connection.execute(workers.update().values(alive_ns=None))


def versions(connection: Connection, row: Row[Any]) -> frozenset[Version]:
    """The problems that a worker may grade: it has the private cases that an organizer has confirmed."""
    confirmed = {(pin.problem, pin.final): pin.private_sha256 for pin in connection.execute(select(pins))}
    offered = offered_versions(row).items()
    return frozenset(found for found, private in offered if confirmed.get((found.problem, found.final)) == private)


def offered_versions(row: Row[Any]) -> dict[Version, str | None]:
    """The problems that a worker has, with the hashes of their private cases, confirmed or not."""
    found: dict[Version, str | None] = {}
    for slug, hashes in _parsed(row.problems).items():
        found[Version(slug, hashes.public, False)] = hashes.private
        found[Version(slug, hashes.final_public, True)] = hashes.final_private
    return found


@lru_cache(maxsize=256)
def _parsed(problems: str) -> Mapping[str, ProblemHashes]:
    return _PROBLEMS.validate_json(problems)


def _refuse_incompatible(service: Service, message: WorkerHello) -> None:
    rules = service.project.settings.server
    remedy = f"install kernelmark {__version__} there, as the server has"
    if message.protocol != WORK_PROTOCOL:
        what = f"speaks protocol {message.protocol}, the server {WORK_PROTOCOL}"
        raise Refusal(409, "worker-version", "worker", what, remedy)
    if message.version != __version__:
        raise Refusal(409, "worker-version", "worker", f"has kernelmark {ascii(message.version)[1:-1]}", remedy)
    if message.sandbox not in rules.sandboxes:
        what = f"uses the sandbox {message.sandbox}, whose verdicts this server does not take"
        raise Refusal(409, "worker-sandbox", "worker", what, f"use one of {', '.join(rules.sandboxes)}")
    if rules.pools and message.pool not in rules.pools:
        what = f"has the device {ascii(message.pool)[1:-1]}, which is not in [server] pools"
        raise Refusal(409, "worker-pool", "worker", what, f"the server's pools are {', '.join(rules.pools)}")
