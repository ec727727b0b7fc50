"""Leases: which worker grades what, and until when. The routes of workers call it.

A lease is timed by the server's monotonic clock. All functions are changes of the database (`Database.write`), unless
they say that they only read.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from kernelmark.server.database.database import AnyRow, after_commit
from kernelmark.server.database.tables import gradings, pauses, sources, submissions
from kernelmark.server.database.tables import workers as worker_rows
from kernelmark.server.queue import durations, endings, virtual_times, workers
from kernelmark.server.queue.claimable import ClaimableJobs
from kernelmark.server.queue.durations import limit_ns, step_ns
from kernelmark.server.queue.order import FlowHead, charge, choose
from kernelmark.server.queue.project_files import ProjectSnapshot
from kernelmark.server.service import Service
from kernelmark.service.work import LEASE_S, Claim, Heartbeat, HeartbeatResponse, HeldLease, Lease, Leases, Task

_LEASE_NS = round(LEASE_S * 1e9)
_UNLISTED_NS = 5 * 10**9
"""How soon after it was granted a lease must be in the worker's list."""
_FOREVER_NS = 3600 * 10**9
"""The time limit of a problem whose files are gone from the server."""

_of_worker = (gradings.c.worker == bindparam("worker")) & (gradings.c.state == "leased")
_HELD = select(gradings).where(_of_worker)
_OPEN_CLAIMS = select(gradings.c.run, gradings.c.claim).where(_of_worker)
_OPEN_CLAIMS = _OPEN_CLAIMS.order_by(gradings.c.granted_ns, gradings.c.position)
_BUSY = select(gradings.c.worker).where(gradings.c.state == "leased").distinct()
_PAUSED = select(pauses.c.why).where(pauses.c.subject == bindparam("account"))
_OVERDUE = select(gradings).where(
    gradings.c.state == "leased",
    (gradings.c.leased_until_ns <= bindparam("now")) | (gradings.c.hard_end_ns <= bindparam("now")),
)
_LEASE = (
    gradings.update()
    .where(gradings.c.run == bindparam("leased"))
    .values(state="leased", version=gradings.c.version + 1, leases=gradings.c.leases + 1)
)
_ANY_QUEUED = (
    select(gradings.c.run)
    .join(worker_rows, worker_rows.c.pool == gradings.c.pool)
    .where(gradings.c.state == "queued", worker_rows.c.name == bindparam("worker"))
    .limit(1)
)
_TASKS = (
    select(gradings, submissions.c.effort, submissions.c.name, submissions.c.author, sources)
    .join(submissions, submissions.c.run == gradings.c.submission)
    .join(sources, sources.c.sha256 == submissions.c.source)
    .where(gradings.c.run.in_(bindparam("runs", expanding=True)))
)


def claim(connection: Connection, service: Service, worker: str, request: Claim) -> Leases:
    """Lease the jobs that are next to a worker, as many as it takes; the same claim again gets the same leases.

    Raises:
        Refusal: the worker must say hello first.
    """
    row = workers.check_instance(connection, service, worker, request.instance)
    held = connection.execute(_OPEN_CLAIMS, {"worker": worker}).all()
    if before := [lease.run for lease in held if lease.claim == request.claim]:
        return _leases(connection, before)
    free = min(request.free, row.slots + 1 - len(held))
    if free > row.slots - len(held) and _another_is_idle(connection, service, row):
        free -= 1  # it would wait here, and begins there
    if row.paused or free <= 0 or paused(connection) is not None:
        return Leases(leases=())
    return _leases(connection, _grant(connection, service, row, request.claim, free))


def _another_is_idle(connection: Connection, service: Service, worker: Row[Any]) -> bool:
    """Whether another worker of the pool holds nothing and could claim a job."""
    busy = set(connection.scalars(_BUSY))
    others = (row for row in workers.alive(connection, service) if row.pool == worker.pool and not row.paused)
    return any(
        ClaimableJobs(connection, other).heads()
        for other in others
        if other.name != worker.name and other.name not in busy
    )


def any_queued(connection: Connection, worker: str) -> bool:
    """Whether a job is queued in the worker's pool, whether or not the worker can grade it. Only reads."""
    return connection.execute(_ANY_QUEUED, {"worker": worker}).first() is not None


def heartbeat(connection: Connection, service: Service, worker: str, beat: Heartbeat) -> HeartbeatResponse:
    """Renew the leases that a worker lists, keep their progress, and requeue the jobs of those that it does not list.

    Raises:
        Refusal: the worker must say hello first.
    """
    workers.check_instance(connection, service, worker, beat.instance)
    if beat.leaves:
        workers.forget_instance(connection, service, worker)
        return HeartbeatResponse(end=())
    now, listed = service.clock.monotonic_ns(), {held.lease: held for held in beat.held}
    for grading in _held(connection, worker):
        if (held := listed.get(grading.lease)) is not None:
            _renew(connection, service, grading, held, now)
        elif now - grading.granted_ns > _UNLISTED_NS:
            endings.requeue(connection, service, grading)
    return heartbeat_response(connection, worker, tuple(listed))


def heartbeat_response(connection: Connection, worker: str, leases: Sequence[str]) -> HeartbeatResponse:
    """The response to a worker that holds these leases. Only reads."""
    current = {grading.lease for grading in _held(connection, worker)}
    why = connection.scalar(select(worker_rows.c.paused).where(worker_rows.c.name == worker))
    return HeartbeatResponse(end=tuple(lease for lease in leases if lease not in current), paused=why or "")


def paused(connection: Connection, account: str = "") -> str | None:
    """Why the whole queue is paused, or the submissions of one account; None: it is not. Only reads."""
    return connection.scalar(_PAUSED, {"account": account})


def restart_timers(connection: Connection, service: Service) -> None:
    """Time all leases from now on: the server has started, and its monotonic clock may have, too."""
    workers.mark_all_silent(connection)
    now = service.clock.monotonic_ns()
    for grading in connection.execute(select(gradings).where(gradings.c.state == "leased")).all():
        times = _times(service.files.snapshot, grading, now, began=grading.started_ns is not None)
        began = now if grading.started_ns is not None else None
        again = gradings.update().where(gradings.c.run == grading.run)
        connection.execute(again.values(granted_ns=now, started_ns=began, progress_ns=began, **times))


def expire(connection: Connection, service: Service) -> None:
    """Requeue the jobs of leases that were not renewed in time, or have taken longer than their problems allow."""
    for grading in connection.execute(_OVERDUE, {"now": service.clock.monotonic_ns()}).all():
        endings.requeue(connection, service, grading)
        after_commit(connection, partial(service.changes.notify, f"worker:{grading.worker}"))


def _grant(connection: Connection, service: Service, worker: Row[Any], claim: str, free: int) -> list[str]:
    """Lease the jobs that are next to a worker, and return their runs."""
    claimable = ClaimableJobs(connection, worker)
    heads = claimable.heads()
    if not heads:
        return []
    times = virtual_times.load(connection, worker.pool)
    charged, runs = list[FlowHead](), list[str]()
    while len(runs) < free and (head := choose(times, heads.values())) is not None:
        job = claimable.job(head)
        expected_ns = _expected_ns(connection, service, worker, job)
        charge(times, head, expected_ns, {other.job_class for other in heads.values()})
        _lease(connection, service, worker, claim, job, expected_ns)
        charged.append(head)
        runs.append(job.run)
        del heads[head.job_class, head.share]
        heads |= claimable.heads((head.job_class, head.share))
    virtual_times.save(connection, worker.pool, times, charged)
    after_commit(connection, lambda: service.changes.notify("queue", *(f"run:{run}" for run in runs)))
    return runs


def _expected_ns(connection: Connection, service: Service, worker: Row[Any], job: AnyRow) -> int:
    """What a job is expected to take. If that was unknown when it was queued, what is known by now."""
    problem = service.files.snapshot.problems.get(job.problem)
    if problem is None or job.expected_ns != durations.reserved_ns(problem, job.mode):
        return int(job.expected_ns)
    now_ns = service.clock.now_ns()
    return durations.expected_ns(connection, problem, worker.pool, job.mode, job.effort, job.language, now_ns)


def _lease(
    connection: Connection, service: Service, worker: Row[Any], claim: str, job: AnyRow, expected_ns: int
) -> None:
    now = service.clock.monotonic_ns()
    lease = {
        "leased": job.run,
        "lease": secrets.token_hex(16),
        "claim": claim,
        "worker": worker.name,
        "instance": worker.instance,
        "leased_ns": service.clock.now_ns(),
        "granted_ns": now,
        "expected_ns": expected_ns,
        **_times(service.files.snapshot, job, now, began=False),
    }
    connection.execute(_LEASE, lease)


def _times(snapshot: ProjectSnapshot, job: AnyRow, now: int, *, began: bool) -> dict[str, int]:
    """Until when a lease counts. A job that still waits in its worker may take as much longer as another job takes."""
    own = _limit_ns(snapshot, job)
    before = 0 if began else max((limit_ns(problem, "submit") for problem in snapshot.problems.values()), default=own)
    return {"leased_until_ns": now + _LEASE_NS, "hard_end_ns": now + 2 * (own + before)}


def _limit_ns(snapshot: ProjectSnapshot, job: AnyRow) -> int:
    problem = snapshot.problems.get(job.problem)
    return _FOREVER_NS if problem is None else limit_ns(problem, job.mode)


def _renew(connection: Connection, service: Service, grading: Row[Any], held: HeldLease, now: int) -> None:
    """Renew a lease, unless its progress is older than the longest step."""
    snapshot, changed = service.files.snapshot, dict[str, object]()
    progress = None if held.progress is None else held.progress.model_dump_json()
    since = grading.granted_ns if grading.progress_ns is None else grading.progress_ns
    if progress is not None and progress != grading.progress:
        since = now
        changed = {"progress": progress, "progress_ns": now, "version": gradings.c.version + 1}
        if grading.started_ns is None:
            changed |= {"started_ns": now, "hard_end_ns": _times(snapshot, grading, now, began=True)["hard_end_ns"]}
        after_commit(connection, lambda: service.changes.notify(f"run:{grading.run}"))
    problem = snapshot.problems.get(grading.problem)
    waits = grading.started_ns is None and progress is None
    longest = grading.hard_end_ns - grading.granted_ns if waits or problem is None else step_ns(problem)
    if now - since <= longest:
        changed["leased_until_ns"] = now + _LEASE_NS
    if changed:
        connection.execute(gradings.update().where(gradings.c.run == grading.run).values(**changed))


def _held(connection: Connection, worker: str) -> list[Row[Any]]:
    return list(connection.execute(_HELD, {"worker": worker}))


def _leases(connection: Connection, runs: Sequence[str]) -> Leases:
    """The tasks of leased runs, in this order."""
    if not runs:
        return Leases(leases=())
    by_run = {row.run: row for row in connection.execute(_TASKS, {"runs": list(runs)})}
    return Leases(leases=tuple(Lease(lease=by_run[run].lease, task=_task(by_run[run])) for run in runs))


def _task(row: Row[Any]) -> Task:
    return Task(
        run=row.run,
        problem=row.problem,
        problem_sha256=row.problem_sha256,
        final=row.final,
        mode=row.mode,
        effort=row.effort,
        name=row.name,
        author=row.author,
        language=row.language,
        source=b64encode(row.source),
        beside=json.loads(row.beside),
        alone=row.alone,
    )
