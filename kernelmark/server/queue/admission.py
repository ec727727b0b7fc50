"""Admits submissions: checks the rules that they must meet, and queues them and reserves their limits in one change.

The routes of submissions call it. It reads no files of the project: `Service.files` has a snapshot of them.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from harness.errors import HarnessError, UsageError, nearest
from harness.kinds import Effort
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.problem.schedule import Schedule
from harness.submission import Submission
from kernelmark.project.competition import schedule_of
from kernelmark.record.lateness import Remark, remark_on
from kernelmark.server.accounts.accounts import owner_of
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import moment
from kernelmark.server.database.database import after_commit
from kernelmark.server.database.tables import accounts, facts, gradings, pauses, sources, submissions, workers
from kernelmark.server.queue import durations, limits
from kernelmark.server.queue.project_files import DAY_NS
from kernelmark.server.record.sources import as_stored
from kernelmark.server.service import Service
from kernelmark.service.refusal import WORKER_STARTING, Refusal
from kernelmark.service.submissions import Mode, SubmissionRequest
from leaderboard.record.archive import refuse_if_unwritable, refuse_other_content

NEWCOMERS = "newcomers"
"""The share that all accounts of less than a day have together, beyond this machine."""
_MOST_QUEUED = 20_000
_MOST_QUEUED_BYTES = 2 << 30
LEAST_FREE_BYTES = 2 << 30
"""With less free space on a disk no submission is accepted, so that answers still fit."""
_LOG = logging.getLogger("kernelmark.server")

# Statements are made once: to make one takes longer than to execute it.
_ACCOUNT = (
    select(accounts, pauses.c.why.label("paused"))
    .outerjoin(pauses, pauses.c.subject == accounts.c.name)
    .where(accounts.c.id == bindparam("account"))
)
_BEFORE = select(submissions.c.run, submissions.c.request_sha256).where(
    submissions.c.account == bindparam("account"), submissions.c.idempotency_key == bindparam("key")
)
_NEWEST_RECEIPT = select(facts.c.value).where(facts.c.key == "received")
_POOLS = select(workers.c.pool, workers.c.device).where(workers.c.pool.is_not(None))
_SAME = (
    select(submissions.c.run)
    .join(gradings, gradings.c.run == submissions.c.run)
    .where(
        submissions.c.account == bindparam("account"),
        submissions.c.source == bindparam("source"),
        submissions.c.received_ns > bindparam("since"),
        submissions.c.problem == bindparam("problem"),
        submissions.c.mode == bindparam("mode"),
        submissions.c.pool == bindparam("pool"),
        submissions.c.effort == bindparam("effort"),
        gradings.c.problem_sha256 == bindparam("problem_sha256"),
        gradings.c.final == bindparam("final"),
        gradings.c.state.not_in(("cancelled", "failed")) | (gradings.c.visible_ns > bindparam("now")),
    )
    .order_by(submissions.c.received_ns.desc())
    .limit(1)
)
_UPDATE_SOURCE = sources.update().where(sources.c.sha256 == bindparam("submission"))
_UPDATE_RECEIPT = facts.update().where(facts.c.key == "received")


def admit(
    connection: Connection,
    service: Service,
    principal: Principal,
    request: SubmissionRequest,
    name: str,
    idempotency_key: str,
    request_sha256: str,
) -> tuple[str, bool]:
    """Queue a submission, and return its run and whether it is new.

    The same request with the same key, and the same source again within a day, get the run that exists.

    Args:
        name: of the file, as shown.
        request_sha256: of the whole request: with the same key, another one is refused.

    Raises:
        Refusal: a rule is not met; nothing has changed then.
        SubmissionError: it is not a submission: its files are not text, say. Nothing has changed.
    """
    account = _account(connection, principal, request)
    key = {"account": account.id, "key": idempotency_key}
    before = connection.execute(_BEFORE, key).one_or_none()
    if before is not None:
        if before.request_sha256 != request_sha256:
            what = "was used for another request"
            raise Refusal(409, "key-used", "Idempotency-Key", what, "draw a new key for each submission")
        return before.run, False
    if account.paused is not None:
        what = f"submissions of {account.name} are paused: {account.paused}"
        raise Refusal(403, "paused", "account", what, "ask the organizers")
    problem = service.files.snapshot.problem(request.problem)
    beside = {file.name: file.content for file in request.beside}
    submission = Submission.of(request.source, request.language, author=account.name, name=name, beside=beside)
    row = _row(connection, service, principal, account, request, problem, submission)
    same = {**row, "since": row["received_ns"] - DAY_NS, "now": service.clock.now_ns()}
    if not request.again and (run := connection.scalar(_SAME, same)) is not None:
        return str(run), False
    _refuse_without_room(service, request.mode, problem, submission)
    limits.refuse_more(connection, service, account, row["owner"], row["received_ns"], request.mode)
    row |= {"idempotency_key": idempotency_key, "request_sha256": request_sha256}
    _insert(connection, row, submission)
    totals = service.files.totals
    totals.queued += 1
    totals.queued_bytes += submission.size_bytes
    totals.day_device_ns += row["expected_ns"]
    after_commit(connection, lambda: service.changes.notify("queue", "jobs", f"run:{row['run']}"))
    return row["run"], True


def _row(
    connection: Connection,
    service: Service,
    principal: Principal,
    account: Row[Any],
    request: SubmissionRequest,
    problem: Problem,
    submission: Submission,
) -> dict[str, Any]:
    """The columns of a submission and of its first grading, but for the idempotency key."""
    settings = service.project.settings
    received_ns = max(service.clock.now_ns(), int(connection.scalar(_NEWEST_RECEIPT) or 0) + 1)
    received = moment(received_ns)
    schedule = schedule_of(settings, problem, received)
    remark = _remark(service, account, schedule, problem, received) if request.mode == "submit" else None
    pool = _pool(connection, service, request, problem)
    effort: Effort = "screen" if request.mode == "screen" else request.effort
    expected_ns = durations.expected_ns(
        connection, problem, pool, request.mode, effort, submission.language, service.clock.now_ns()
    )
    run, owner = secrets.token_hex(8), owner_of(principal)
    is_newcomer = received_ns - account.created_ns < DAY_NS and settings.server.public
    return {
        "run": run, "account": account.id, "owner": owner, "author": submission.author, "name": submission.name,
        "source": submission.sha256, "problem": problem.slug, "problem_sha256": problem.sha256,
        "mode": request.mode, "effort": effort, "pool": pool, "batch": request.batch,
        "job_class": "people" if request.batch is None else "batch", "received_ns": received_ns,
        "on_time": not schedule.delay(received).days, "final": schedule.closed(received),
        "remark": None if remark is None else json.dumps(asdict(remark)),
        "submission": run, "state": "queued", "version": 1, "share": NEWCOMERS if is_newcomer else owner,
        "position": received_ns, "queued_ns": received_ns, "expected_ns": expected_ns, "tries": 0, "leases": 0,
    }  # fmt: skip


def _remark(
    service: Service, account: Row[Any], schedule: Schedule, problem: Problem, received: datetime
) -> Remark | None:
    """What the record must say of a submission with its verdict."""
    try:
        late = remark_on(schedule, problem.slug, received, received, lambda: account.name)
    except UsageError as error:
        remedy = "test it with check or bench, which stay possible"
        raise Refusal(403, "closed", error.where, error.what, remedy) from None
    if late is not None or account.role == "participant" or service.project.settings.server.staff_ranks:
        return late
    why = "by one of the organizers: it does not rank, unless `staff_ranks` in [server] says so"
    return Remark("disqualify", "server", why)


def _account(connection: Connection, principal: Principal, request: SubmissionRequest) -> Row[Any]:
    """The account that submits, if it may."""
    if principal.account_id is None or not principal.has("submit"):
        raise Refusal(403, "scope", "token", "is not for submitting", "use one with the scope submit")
    if request.batch is not None and not principal.has("batch"):
        raise Refusal(403, "scope", "token", "is not for batches", "use one with the scope batch, or leave batch out")
    if request.mode == "submit" and request.effort == "screen":
        what = "times one benchmark case, and so cannot rank"
        raise Refusal(422, "effort", "effort screen", what, "use the mode screen, or the effort quick")
    return connection.execute(_ACCOUNT, {"account": principal.account_id}).one()


def _pool(connection: Connection, service: Service, request: SubmissionRequest, problem: Problem) -> str:
    """The pool that grades it.

    Raises:
        Refusal: there is none of this name, or none at all; or its device runs neither the language nor a test.
    """
    seen = {row.pool: row.device for row in connection.execute(_POOLS)}
    pools = service.project.settings.server.pools or sorted(seen)
    pool = request.pool or next(iter(pools), None)
    if pool is None:
        if service.own_worker.is_set():
            what = "is starting its worker, and has no device until then"
            raise Refusal(503, WORKER_STARTING, "the server", what, "try again in a moment", retry_after_s=2)
        what = "has no device yet: no worker has connected, and [server] pools names none"
        raise Refusal(
            503, "no-pool", "the server", what, "try again once the organizers have started one", retry_after_s=60
        )
    if pool not in pools:
        remedy = nearest(pool, list(pools))
        raise Refusal(422, "no-such-pool", f"pool {ascii(pool)[:80]}", "is not one of this server", remedy)
    device = seen.get(pool)
    if device is not None and device not in LANGUAGES[request.language].devices:
        what = f"does not run on {pool}"
        remedy = "choose another pool" if len(pools) > 1 else "submit one in another language"
        raise Refusal(422, "language", f"a .{request.language} submission", what, remedy)
    if device is not None and not any(device in test.devices for test in problem.tests):
        what = f"has no case for {device}, where {pool} would run it"
        remedy = "choose another pool" if len(pools) > 1 else "its organizers need a worker with another device"
        raise Refusal(422, "no-case", f"problem {problem.slug}", what, remedy)
    return pool


def _refuse_without_room(service: Service, mode: Mode, problem: Problem, submission: Submission) -> None:
    """Refuse what the queue, the disk or the archive cannot take."""
    totals, settings = service.files.totals, service.project.settings
    if totals.queued >= _MOST_QUEUED or totals.queued_bytes + submission.size_bytes > _MOST_QUEUED_BYTES:
        remedy = "submit again later"
        raise Refusal(503, "queue-full", "the server", "has no room in its queue", remedy, retry_after_s=60)
    for folder in {service.database.path.parent, settings.root}:
        if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
            what = "takes no submissions, since its disk is nearly full"
            raise Refusal(503, "disk-full", "the server", what, "tell its organizers", retry_after_s=600)
    if mode != "submit":
        return
    archive = settings.locate("archive")
    try:
        refuse_if_unwritable(archive, problem.slug, submission)
        refuse_other_content(archive, problem.slug, submission)
    except (UsageError, HarnessError) as error:
        _LOG.error("a submission was refused: %s", error)
        what = "could not be kept in the server's archive"
        raise Refusal(503, "archive", submission.name, what, "tell the organizers") from None


def _insert(connection: Connection, row: dict[str, Any], submission: Submission) -> None:
    """Store a source, a submission, its first grading, and the time of the newest receipt."""
    source = {
        "language": submission.language,
        "source": submission.source,
        "beside": as_stored(submission),
        "bytes": submission.size_bytes,
        "last_needed_ns": row["received_ns"],
    }
    # Its content, too: it may have been dropped since.
    if not connection.execute(_UPDATE_SOURCE, {"submission": submission.sha256, **source}).rowcount:
        connection.execute(sources.insert(), {"sha256": submission.sha256, **source})
    for table in (submissions, gradings):
        connection.execute(table.insert(), {name: value for name, value in row.items() if name in table.c})
    newest = {"value": str(row["received_ns"])}
    if not connection.execute(_UPDATE_RECEIPT, newest).rowcount:
        connection.execute(facts.insert(), {"key": "received", **newest})
