"""Ends leases: with a result, a failure, a place in the queue again, or a cancellation.

Routes, the comparison of answers and the sweeper call it. All functions are changes of the database: see
`Database.write`. A lease that is lost to the network or to a restart of the server costs a job no try; only a judge's
process that ended while it graded does.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select

from kernelmark.project.competition import schedule_of
from kernelmark.record.lateness import remark_on
from kernelmark.server.accounts import audit
from kernelmark.server.accounts.accounts import owner_of
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import moment
from kernelmark.server.database.database import after_commit
from kernelmark.server.database.tables import gradings, pins, submissions, workers
from kernelmark.server.queue import virtual_times
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import TaskError

_MOST_TRIES = 3
_MOST_LEASES = 5
_MOST_ERRORS = 3
"""Harness errors of one job where there is only one worker; of two workers, two are enough."""
_SHOWN_EVERY_NS = 5 * 10**9
SPENT_ERROR = "LeasesSpentError"
"""The class of the error of a job that was leased too often."""

# Statements are made once: to make one takes longer than to execute it.
_ANSWERED = (
    select(gradings, *(column.label(f"submission_{column.name}") for column in submissions.c))
    .join(submissions, submissions.c.run == gradings.c.submission)
    .where(
        (gradings.c.lease == bindparam("lease")) | (gradings.c.last_lease == bindparam("lease")),
        gradings.c.worker == bindparam("worker"),
    )
)
_NO_FAULT = workers.update().where(workers.c.name == bindparam("worker"), workers.c.faults != "[]").values(faults="[]")
_HAS_PRIVATE = select(pins.c.problem).where(pins.c.problem == bindparam("problem"), pins.c.private_sha256.is_not(None))
_LAST_CURSOR = select(func.max(gradings.c.cursor))


def find_answered(connection: Connection, worker: str, lease: str) -> Row[Any]:
    """The grading that a worker answers, with its submission's columns.

    A lease counts while it is the current one, and afterwards until its grading is leased again. If the state is not
    `leased`, `queued` or `failed`, the lease was answered before.

    Raises:
        Refusal: the lease does not count any more.
    """
    found = connection.execute(_ANSWERED, {"lease": lease, "worker": worker}).first()
    if found is None or found.state == "cancelled" or (found.lease != lease and found.lease is not None):
        what = "has ended, and this answer comes too late"
        raise Refusal(409, "lease-ended", f"lease {lease[:8]}", what, "drop the answer; nothing has changed")
    return found


def finish(
    connection: Connection,
    service: Service,
    grading: Row[Any],
    *,
    answer: str,
    outcome: str,
    score_s: float | None = None,
    device_ns: int | None = None,
) -> None:
    """Keep a verdict or a check that was compared with its task.

    The grading is `graded`, or `done` if it is not to be recorded. It counts towards the limits with what it took.

    Args:
        grading: from `find_answered`, with the state `leased`, `queued` or `failed`.
        device_ns: how long it took; None: what the lease took since its first progress.
    """
    took_ns = _used_ns(service, grading) if device_ns is None else device_ns
    now_ns, recorded = service.clock.now_ns(), grading.mode == "submit"
    virtual_times.settle(connection, grading, took_ns)
    _update(
        connection,
        service,
        grading,
        "queue",
        version=grading.version,  # nobody may see before `visible_ns` that it has ended
        state="graded" if recorded else "done",
        lease=grading.lease or grading.last_lease,
        answer=answer,
        outcome=outcome,
        score_s=None if score_s is None else repr(score_s),
        device_ns=took_ns,
        charged=grading.job_class != "regrade",
        error=None,
        error_class=None,
        ended_ns=now_ns,
        visible_ns=_visible_ns(connection, service, grading, now_ns) if recorded else now_ns,
        cursor=_next_cursor(connection),
    )
    _remark_late_grading(connection, service, grading, now_ns)
    connection.execute(_NO_FAULT, {"worker": grading.worker})


def fail(connection: Connection, service: Service, grading: Row[Any], error: TaskError) -> None:
    """Keep a worker's answer that it could not grade: the grading is queued again, or has failed for good.

    Args:
        grading: from `find_answered`; unless its state is `leased`, nothing changes.
    """
    if grading.state != "leased":
        return
    text = error.model_dump_json()
    failed, refused = json.loads(grading.workers_failed), json.loads(grading.refused_by)
    if error.fault == "usage":
        _fail(connection, service, grading, error.error_class, text)
    elif error.fault == "worker":
        refused = sorted({*refused, grading.worker})
        requeue(connection, service, grading, error=text, refused_by=json.dumps(refused), choosy=True)
    elif error.fault == "judge-lost":
        if grading.tries + 1 >= _MOST_TRIES:
            _fail(connection, service, grading, error.error_class, text)
        else:
            requeue(connection, service, grading, error=text, tries=grading.tries + 1, alone=True)
    else:
        failed.append(grading.worker)
        _note_fault(connection, grading.worker, grading.owner)
        if len(set(failed)) > 1 or len(failed) >= _MOST_ERRORS:
            _fail(connection, service, grading, error.error_class, text)
        else:
            requeue(connection, service, grading, error=text, workers_failed=json.dumps(failed), choosy=True)


def requeue(connection: Connection, service: Service, grading: Row[Any], **changed: Any) -> None:
    """End a lease without a result: its grading is queued again in its old place, or fails after too many leases.

    Args:
        changed: other columns of the grading.
    """
    if grading.leases >= _MOST_LEASES:
        what = f"was leased {grading.leases} times, and never graded"
        error = TaskError(fault="harness", error_class=SPENT_ERROR, what=what)
        text = changed.pop("error", None) or error.model_dump_json()
        _fail(connection, service, grading, SPENT_ERROR, text, **changed)
        return
    virtual_times.settle(connection, grading, None)
    requeued = {"state": "queued", **_UNLEASED, "last_lease": grading.lease, **changed}
    _update(connection, service, grading, "queue", "jobs", **requeued)


def requeue_all(connection: Connection, service: Service, worker: str, but: str | None = None) -> None:
    """End all leases of a worker without a result, except those of one instance."""
    held = select(gradings).where(gradings.c.worker == worker, gradings.c.state == "leased")
    for grading in connection.execute(held).all():
        if grading.instance != but:
            requeue(connection, service, grading)


def clear_refusals(connection: Connection, worker: str) -> None:
    """Let a worker claim again what it could not grade: something of the worker has changed."""
    choosy = select(gradings.c.run, gradings.c.refused_by, gradings.c.workers_failed)
    for row in connection.execute(choosy.where(gradings.c.state == "queued", gradings.c.choosy.is_(True))).all():
        names = [name for name in json.loads(row.refused_by) if name != worker]
        choosy_still = bool(names or json.loads(row.workers_failed))
        changed = gradings.update().where(gradings.c.run == row.run)
        connection.execute(changed.values(refused_by=json.dumps(names), choosy=choosy_still))


def is_shown(grading: Row[Any], now_ns: int) -> bool:
    """Whether the end of a grading may be seen: its moment would reveal how long hidden tests took."""
    visible_ns: int | None = grading.visible_ns
    return visible_ns is None or visible_ns <= now_ns


def cancel(connection: Connection, service: Service, run: str, principal: Principal) -> None:
    """Cancel a grading of one's own or one's team's, or any as an organizer. Cancelling it again changes nothing.

    Until it has been tried nothing is charged. Afterwards it counts as a grading, with the seconds of the lease that
    ends. That also holds while it is queued again: else, cancelling in time would make each try free.

    Until its end is shown, a grading that has ended is answered like one that is leased: the difference would reveal
    how long it took. So the end of one that is cancelled while it is leased is shown as late as a verdict would be.

    Raises:
        Refusal: there is no such run of theirs, or it has ended.
    """
    grading = connection.execute(select(gradings).where(gradings.c.run == run)).one_or_none()
    own = grading is not None and (grading.account == principal.account_id or grading.owner == owner_of(principal))
    if grading is None or not (own or principal.has("organize")):
        raise Refusal(404, "no-such-run", f"run {run}", "is not one of yours", "see `kernelmark runs --from SERVER`")
    if grading.state == "cancelled" or not is_shown(grading, service.clock.now_ns()):
        return
    if grading.state not in ("queued", "leased"):
        raise Refusal(409, "run-ended", f"run {run}", "has been graded", "nothing is left to cancel")
    if not own:
        audit.note(connection, service.clock.now_ns(), principal, "gradings cancel", run, {"old": grading.state})
    cancel_grading(connection, service, grading)


def cancel_grading(connection: Connection, service: Service, grading: Row[Any]) -> None:
    """Cancel a grading that is queued or leased; its worker is notified."""
    leased = grading.state == "leased"
    tried = leased or grading.tries > 0 or grading.workers_failed != "[]"
    used_ns = _used_ns(service, grading) if leased else 0
    if leased:
        virtual_times.settle(connection, grading, used_ns)
        after_commit(connection, lambda: service.changes.notify(f"worker:{grading.worker}"))
    now_ns = service.clock.now_ns()
    visible_ns = _visible_ns(connection, service, grading, now_ns) if leased and grading.mode == "submit" else now_ns
    _update(
        connection,
        service,
        grading,
        "queue",
        version=grading.version + (visible_ns == now_ns),
        state="cancelled",
        lease=None,
        device_ns=used_ns,
        charged=tried and grading.job_class != "regrade",
        ended_ns=now_ns,
        visible_ns=visible_ns,
        cursor=_next_cursor(connection),
    )


def retry(connection: Connection, service: Service, grading: Row[Any], *, final: bool, problem_sha256: str) -> None:
    """Queue a failed grading again, as if it had never been leased.

    Raises:
        Refusal: it has not failed.
    """
    if grading.state != "failed":
        what = f"is {grading.state}, and has not failed"
        raise Refusal(409, "run-not-failed", f"run {grading.run}", what, "only what has failed is graded again")
    _update(
        connection, service, grading, "queue", "jobs",
        state="queued", **_UNLEASED, final=final, problem_sha256=problem_sha256,
        tries=0, leases=0, alone=False, workers_failed="[]", refused_by="[]", choosy=False,
        error=None, error_class=None, ended_ns=None, visible_ns=None, cursor=None,
    )  # fmt: skip


_UNLEASED = {
    "lease": None,
    "claim": None,
    "leased_until_ns": None,
    "hard_end_ns": None,
    "started_ns": None,
    "progress": None,
    "progress_ns": None,
}
"""Worker, instance and the moment of the lease stay: its answer is compared with them."""


def _fail(
    connection: Connection, service: Service, grading: Row[Any], error_class: str, error: str, **changed: Any
) -> None:
    """End a grading for good, without a result. The owner is charged nothing, but only so many may fail a day.

    Its last progress stays, since only gradings that began are counted.
    """
    virtual_times.settle(connection, grading, None)
    now_ns = service.clock.now_ns()
    _update(
        connection,
        service,
        grading,
        state="failed",
        **{**_UNLEASED, "progress": grading.progress, **changed},
        last_lease=grading.lease,
        error=error,
        error_class=error_class,
        device_ns=0,
        charged=False,
        ended_ns=now_ns,
        visible_ns=now_ns,
        cursor=_next_cursor(connection),
    )


def _remark_late_grading(connection: Connection, service: Service, grading: Row[Any], now_ns: int) -> None:
    """Note for the record that a submission which is graded after the deadline was received before it."""
    problem = service.files.snapshot.problems.get(grading.problem)
    if grading.mode != "submit" or problem is None or grading.submission_remark is not None:
        return
    received = moment(grading.submission_received_ns)
    schedule = schedule_of(service.project.settings, problem, received)
    if schedule.delay(received).days:  # an earlier deadline was set since
        return
    remark = remark_on(schedule, problem.slug, received, moment(now_ns), lambda: "server")
    if remark is not None:
        same = submissions.c.run == grading.submission
        connection.execute(submissions.update().where(same).values(remark=json.dumps(asdict(remark))))


def _update(connection: Connection, service: Service, grading: Row[Any], *topics: str, **values: Any) -> None:
    changed = gradings.update().where(gradings.c.run == grading.run)
    connection.execute(changed.values(**{"version": grading.version + 1, **values}))
    after_commit(connection, lambda: service.changes.notify(f"run:{grading.run}", *topics))


def _used_ns(service: Service, grading: Row[Any]) -> int:
    """How long it has been graded: since its first progress."""
    return 0 if grading.started_ns is None else max(0, service.clock.monotonic_ns() - grading.started_ns)


def _visible_ns(connection: Connection, service: Service, grading: Row[Any], now_ns: int) -> int:
    """From when on its end is shown: with hidden tests at a multiple of 5 s, since their duration reveals sizes."""
    problem = service.files.snapshot.problems.get(grading.problem)
    public = problem is not None and not any(test.hidden for test in problem.tests)
    if public and connection.execute(_HAS_PRIVATE, {"problem": grading.problem}).first() is None:
        return now_ns
    return -(-now_ns // _SHOWN_EVERY_NS) * _SHOWN_EVERY_NS


def _next_cursor(connection: Connection) -> int:
    return (connection.scalar(_LAST_CURSOR) or 0) + 1


def _note_fault(connection: Connection, worker: str, owner: str) -> None:
    """Count a harness error against the worker, once for each owner."""
    faults = connection.scalar(select(workers.c.faults).where(workers.c.name == worker))
    owners = [] if faults is None else json.loads(faults)
    if owner not in owners:
        connection.execute(workers.update().where(workers.c.name == worker).values(faults=json.dumps([*owners, owner])))
