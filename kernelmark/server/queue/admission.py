"""Admits submissions: checks the rules that they must meet, and queues them and reserves their limits in one change.

The routes of submissions call it. It reads no files of the project: `Service.files` has a snapshot of them.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, select

from harness.errors import HarnessError, SubmissionError, UsageError, nearest
from harness.kinds import Effort
from harness.languages import LANGUAGES
from harness.problem import Problem
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
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import JobClass, Mode, SubmissionRequest
from leaderboard.record.archive import refuse_if_unwritable, refuse_other_content

NEWCOMERS = "newcomers"
"""The share that all accounts of less than a day have together, beyond this machine."""
_MOST_QUEUED = 20_000
_MOST_QUEUED_BYTES = 2 << 30
_LEAST_FREE_BYTES = 2 << 30
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
_KEEP_SOURCE = sources.update().where(sources.c.sha256 == bindparam("submission"))
_KEEP_RECEIPT = facts.update().where(facts.c.key == "received")


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
    job = _Job.of(connection, service, principal, account, request, name)
    if not request.again and (run := _same(connection, job, service.clock.now_ns())) is not None:
        return run, False
    _refuse_without_room(service, job)
    limits.refuse_more(connection, service, account, job.owner, job.received_ns, request.mode)
    run = _insert(connection, job, request, idempotency_key, request_sha256)
    totals = service.files.totals
    totals.queued += 1
    totals.queued_bytes += job.submission.size_bytes
    totals.day_device_ns += job.expected_ns
    after_commit(connection, lambda: service.changes.notify("queue", "jobs", f"run:{run}"))
    return run, True


class _Job(NamedTuple):
    """A request with all that is stored of it."""

    submission: Submission
    account: int
    owner: str
    share: str
    problem: Problem
    mode: Mode
    effort: Effort
    pool: str
    job_class: JobClass
    final: bool
    received_ns: int
    on_time: bool
    remark: Remark | None
    expected_ns: int

    @classmethod
    def of(
        cls,
        connection: Connection,
        service: Service,
        principal: Principal,
        account: Row[Any],
        request: SubmissionRequest,
        name: str,
    ) -> _Job:
        """
        Raises:
            Refusal: the request is not one that the project takes.
        """
        settings, problem = service.project.settings, service.files.snapshot.problem(request.problem)
        submission = _submission(request, account.name, name)
        newest = connection.scalar(_NEWEST_RECEIPT)
        received_ns = max(service.clock.now_ns(), int(newest or 0) + 1)
        received = moment(received_ns)
        schedule = schedule_of(settings, problem, received)
        remark = None
        if request.mode == "submit":
            try:
                remark = remark_on(schedule, problem.slug, received, received, lambda: account.name)
            except UsageError as error:
                remedy = "test it with check or bench, which stay possible"
                raise Refusal(403, "closed", error.where, error.what, remedy) from None
            if remark is None and account.role != "participant" and not settings.server.staff_ranks:
                remark = Remark(
                    "disqualify",
                    "server",
                    "by one of the organizers: it does not rank, unless `staff_ranks` in [server] says so",
                )
        pool = _pool(connection, service, request)
        effort = "screen" if request.mode == "screen" else request.effort
        owner = owner_of(principal)
        new = received_ns - account.created_ns < DAY_NS and settings.server.public
        return cls(
            submission=submission,
            account=account.id,
            owner=owner,
            share=NEWCOMERS if new else owner,
            problem=problem,
            mode=request.mode,
            effort=effort,
            pool=pool,
            job_class="people" if request.batch is None else "batch",
            final=schedule.closed(received),
            received_ns=received_ns,
            on_time=not schedule.delay(received).days,
            remark=remark,
            expected_ns=durations.expected_ns(
                connection, problem, pool, request.mode, effort, submission.language, service.clock.now_ns()
            ),
        )


def _account(connection: Connection, principal: Principal, request: SubmissionRequest) -> Row[Any]:
    """The account that submits.

    Raises:
        Refusal: it may not.
    """
    if principal.account_id is None or not principal.has("submit"):
        raise Refusal(403, "scope", "token", "is not for submitting", "use one with the scope submit")
    if request.batch is not None and not principal.has("batch"):
        raise Refusal(403, "scope", "token", "is not for batches", "use one with the scope batch, or leave batch out")
    if request.mode == "submit" and request.effort == "screen":
        what = "times one benchmark case, and so cannot rank"
        raise Refusal(422, "effort", "effort screen", what, "use the mode screen, or the effort quick")
    return connection.execute(_ACCOUNT, {"account": principal.account_id}).one()


def _submission(request: SubmissionRequest, author: str, name: str) -> Submission:
    beside = {file.name: file.content for file in request.beside}
    if len(beside) < len(request.beside):
        raise Refusal(422, "submission", "beside", "has two files of one name", "rename one")
    try:
        return Submission.of(request.source, request.language, author=author, name=name, beside=beside)
    except SubmissionError as error:
        remedy = error.remedy or "put it right, and submit again"
        raise Refusal(422, "submission", error.where, error.what, remedy) from None


def _pool(connection: Connection, service: Service, request: SubmissionRequest) -> str:
    """The pool that grades it.

    Raises:
        Refusal: there is none of this name, or none at all; or its device does not run this language.
    """
    seen = {row.pool: row.device for row in connection.execute(_POOLS)}
    pools = service.project.settings.server.pools or sorted(seen)
    pool = request.pool or next(iter(pools), None)
    if pool is None:
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
    return pool


def _same(connection: Connection, job: _Job, now_ns: int) -> str | None:
    """The account's newest run of a day that graded the same in the same way, or will."""
    return connection.scalar(
        _SAME,
        {
            "account": job.account,
            "source": job.submission.sha256,
            "since": job.received_ns - DAY_NS,
            "problem": job.problem.slug,
            "mode": job.mode,
            "pool": job.pool,
            "effort": job.effort,
            "problem_sha256": job.problem.sha256,
            "final": job.final,
            "now": now_ns,
        },
    )


def _refuse_without_room(service: Service, job: _Job) -> None:
    """
    Raises:
        Refusal: too much is queued, the disk is nearly full, or the source could not be archived.
    """
    totals, settings = service.files.totals, service.project.settings
    if totals.queued >= _MOST_QUEUED or totals.queued_bytes + job.submission.size_bytes > _MOST_QUEUED_BYTES:
        remedy = "submit again later"
        raise Refusal(503, "queue-full", "the server", "has no room in its queue", remedy, retry_after_s=60)
    for folder in {service.database.path.parent, settings.root}:
        if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
            what = "takes no submissions, since its disk is nearly full"
            raise Refusal(503, "disk-full", "the server", what, "tell its organizers", retry_after_s=600)
    if job.mode != "submit":
        return
    archive = settings.locate("archive")
    try:
        refuse_if_unwritable(archive, job.problem.slug, job.submission)
        refuse_other_content(archive, job.problem.slug, job.submission)
    except (UsageError, HarnessError) as error:
        _LOG.error("a submission was refused: %s", error)
        what = "could not be kept in the server's archive"
        raise Refusal(503, "archive", job.submission.name, what, "tell the organizers") from None


def _insert(
    connection: Connection, job: _Job, request: SubmissionRequest, idempotency_key: str, request_sha256: str
) -> str:
    run = secrets.token_hex(8)
    _keep_source(connection, job)
    remark = None if job.remark is None else json.dumps(asdict(job.remark))
    common = {
        "run": run, "account": job.account, "owner": job.owner, "problem": job.problem.slug, "mode": job.mode,
        "pool": job.pool, "job_class": job.job_class,
    }  # fmt: skip
    submission = {
        "idempotency_key": idempotency_key,
        "request_sha256": request_sha256,
        "author": job.submission.author,
        "name": job.submission.name,
        "source": job.submission.sha256,
        "effort": job.effort,
        "batch": request.batch,
        "received_ns": job.received_ns,
        "on_time": job.on_time,
        "remark": remark,
    }
    connection.execute(submissions.insert(), common | submission)
    grading = {
        "submission": run,
        "state": "queued",
        "version": 1,
        "problem_sha256": job.problem.sha256,
        "final": job.final,
        "share": job.share,
        "position": job.received_ns,
        "expected_ns": job.expected_ns,
        "queued_ns": job.received_ns,
        "tries": 0,
        "leases": 0,
    }
    connection.execute(gradings.insert(), common | grading)
    newest = {"value": str(job.received_ns)}
    if not connection.execute(_KEEP_RECEIPT, newest).rowcount:
        connection.execute(facts.insert(), {"key": "received", **newest})
    return run


def _keep_source(connection: Connection, job: _Job) -> None:
    submission = job.submission
    values = {
        "language": submission.language,
        "source": submission.source,
        "beside": as_stored(submission),
        "bytes": submission.size_bytes,
        "last_needed_ns": job.received_ns,
    }
    # Its content, too: it may have been dropped since.
    if not connection.execute(_KEEP_SOURCE, {"submission": submission.sha256, **values}).rowcount:
        connection.execute(sources.insert(), {"sha256": submission.sha256, **values})
