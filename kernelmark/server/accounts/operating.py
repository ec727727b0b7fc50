"""What organizers decide about grading: who may work, which private cases count, and what is paused. Routes call it.

Whoever has a worker's token can forge verdicts, and whoever gives a worker other private cases can change what they
mean. So an organizer makes the tokens and confirms the hashes; a worker's own word is only shown.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select

from kernelmark.project.competition import schedule_of
from kernelmark.server.accounts import accounts, audit, names, tokens
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import moment
from kernelmark.server.database import tables
from kernelmark.server.queue import endings, status
from kernelmark.server.queue import workers as working
from kernelmark.server.service import Service
from kernelmark.service.organizing import PauseRow, Pauses, Pin, PinRow, Pins, WorkerRow, Workers
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import SubmissionStatus
from kernelmark.service.work import ProblemHashes

EVERYBODY = ""
"""The subject of a pause of everything."""


def make_worker_token(connection: Connection, now_ns: int, by: Principal, name: str, days: float) -> str:
    """The secret of a new token for a worker of this name, besides those that it has.

    Raises:
        Refusal: the name is malformed.
    """
    names.refuse_malformed("name", name)
    audit.note(connection, now_ns, by, "workers add", name, {"days": days})
    if connection.execute(select(tables.workers.c.name).where(tables.workers.c.name == name)).first() is None:
        connection.execute(tables.workers.insert().values(name=name))
    return tokens.make(connection, now_ns, "worker", worker=name, days=days, label=name)


def revoke_worker(connection: Connection, service: Service, by: Principal, name: str) -> None:
    """End all tokens of a worker; what it was grading is queued again.

    Raises:
        Refusal: there is no such worker.
    """
    _worker(connection, name)
    now_ns = service.clock.now_ns()
    ended = tokens.revoke(connection, now_ns, tables.tokens.c.worker == name)
    working.forget_instance(connection, service, name)
    audit.note(connection, now_ns, by, "workers revoke", name, {"tokens": ended})


def resume_worker(connection: Connection, service: Service, by: Principal, name: str) -> None:
    """Give a worker work again that was paused for its faults, which are forgotten.

    Raises:
        Refusal: there is no such worker.
    """
    row = _worker(connection, name)
    old = {"old": row.paused, "faults": json.loads(row.faults)}
    audit.note(connection, service.clock.now_ns(), by, "workers resume", name, old)
    working.resume(connection, service, name)


def workers(connection: Connection, now_ns: int) -> Workers:
    """Every worker, by name."""
    counted = (
        select(tables.tokens.c.worker, func.count().label("tokens"))
        .where(tables.tokens.c.kind == "worker", tokens.live(now_ns))
        .group_by(tables.tokens.c.worker)
        .subquery()
    )
    rows = connection.execute(
        select(tables.workers, counted.c.tokens)
        .select_from(tables.workers.outerjoin(counted, counted.c.worker == tables.workers.c.name))
        .order_by(tables.workers.c.name)
    )
    return Workers(
        items=tuple(
            WorkerRow(
                name=row.name,
                tokens=row.tokens or 0,
                pool=row.pool,
                version=row.version,
                sandbox=row.sandbox,
                devices=row.devices,
                seen=None if row.seen_ns is None else moment(row.seen_ns),
                paused=row.paused,
            )
            for row in rows
        )
    )


def pin(connection: Connection, now_ns: int, by: Principal, wanted: Pin) -> None:
    """Confirm the hash of a problem's private cases; workers with others get none of its jobs."""
    key = (tables.pins.c.problem == wanted.problem, tables.pins.c.final == wanted.final)
    old = connection.execute(select(tables.pins).where(*key)).one_or_none()
    replaced = {"pinned": old is not None, "private_sha256": None if old is None else old.private_sha256}
    audit.note(connection, now_ns, by, "workers pin", wanted.problem, {**wanted.model_dump(), "old": replaced})
    connection.execute(delete(tables.pins).where(*key))
    connection.execute(tables.pins.insert().values(**wanted.model_dump()))


def pins(connection: Connection) -> Pins:
    """What is pinned, and what workers say that they have, by problem."""
    said = dict[tuple[str, bool], dict[str, str | None]]()
    for row in connection.execute(select(tables.workers.c.name, tables.workers.c.problems)):
        for slug, document in json.loads(row.problems).items():
            hashes = ProblemHashes.model_validate(document)
            said.setdefault((slug, False), {})[row.name] = hashes.private
            said.setdefault((slug, True), {})[row.name] = hashes.final_private
    pinned = {(row.problem, row.final): row.private_sha256 for row in connection.execute(select(tables.pins))}
    return Pins(
        items=tuple(
            PinRow(
                problem=slug,
                final=final,
                pinned=(slug, final) in pinned,
                private_sha256=pinned.get((slug, final)),
                workers=said.get((slug, final), {}),
            )
            for slug, final in sorted({*said, *pinned})
        )
    )


def pause(connection: Connection, now_ns: int, by: Principal, account: str | None, why: str) -> None:
    """Have nothing graded, of an account or of anybody, until it is released.

    Raises:
        Refusal: there is no such account.
    """
    subject = EVERYBODY if account is None else accounts.find(connection, account).name
    audit.note(connection, now_ns, by, "queue pause", subject, {"why": why, "old": _release(connection, subject)})
    connection.execute(tables.pauses.insert().values(subject=subject, by=by.name, why=why, at_ns=now_ns))


def resume(connection: Connection, now_ns: int, by: Principal, account: str | None) -> None:
    """Release what was paused; nobody does it for their own account.

    Raises:
        Refusal: it is not paused, or is one's own account.
    """
    subject = EVERYBODY if account is None else accounts.find(connection, account).name
    if subject == by.name:
        raise Refusal(403, "own-account", "account", f"{subject} is your own account", "ask another organizer to do it")
    old = _release(connection, subject)
    if old is None:
        raise Refusal(404, "not-paused", subject or "the queue", "is not paused", "see what is: `kernelmark queue`")
    audit.note(connection, now_ns, by, "queue resume", subject, {"old": old})


def pauses(connection: Connection) -> Pauses:
    """Everything that is paused, oldest first."""
    rows = connection.execute(select(tables.pauses).order_by(tables.pauses.c.at_ns))
    return Pauses(
        items=tuple(PauseRow(account=row.subject or None, by=row.by, why=row.why, at=moment(row.at_ns)) for row in rows)
    )


def grade_again(connection: Connection, service: Service, by: Principal, run: str) -> SubmissionStatus:
    """Queue a grading that has failed once more, with the final tests if its problem is closed by now.

    Raises:
        Refusal: there is no such run, it has not failed, or it is one's own or of one's team.
    """
    gradings = tables.gradings
    row = connection.execute(select(gradings).where(gradings.c.run == run)).one_or_none()
    if row is None:
        raise Refusal(404, "no-such-run", f"run {run}", "does not exist", "give the id as the server shows it")
    accounts.refuse_own_run(connection, by, row.account, row.owner)
    now_ns = service.clock.now_ns()
    problem = service.files.snapshot.problem(row.problem)
    closed = schedule_of(service.project.settings, problem, moment(now_ns)).closed(moment(now_ns))
    endings.retry(connection, service, row, final=closed, problem_sha256=problem.sha256)
    audit.note(connection, now_ns, by, "gradings again", run, {"old": row.error_class, "final": closed})
    return status.status(connection, service, run)


def _release(connection: Connection, subject: str) -> str | None:
    """Why it was paused until now; None: it was not."""
    why = connection.execute(select(tables.pauses.c.why).where(tables.pauses.c.subject == subject)).scalar()
    connection.execute(delete(tables.pauses).where(tables.pauses.c.subject == subject))
    return why


def _worker(connection: Connection, name: str) -> Row[Any]:
    row = connection.execute(select(tables.workers).where(tables.workers.c.name == name)).one_or_none()
    if row is None:
        remedy = "see which there are with `kernelmark workers list`"
        raise Refusal(404, "no-such-worker", "worker", f"there is no worker {name[:80]!r}", remedy)
    return row
