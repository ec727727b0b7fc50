"""The status of submissions and of the queue, as people see it: states, places, times, and why something waits. Only
reads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, case, func, select

from kernelmark.server.clock import moment
from kernelmark.server.database.database import AnyRow
from kernelmark.server.database.tables import accounts, gradings, submissions
from kernelmark.server.queue import endings, leases, limits, virtual_times, workers
from kernelmark.server.queue.durations import reserved_ns
from kernelmark.server.queue.forecast import Forecast
from kernelmark.server.queue.order import QueuedJob, finish_times, predicted_order
from kernelmark.server.queue.workers import Version
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import (
    PoolStatus,
    QueueStatus,
    StageProgress,
    SubmissionState,
    SubmissionStatus,
)
from kernelmark.service.work import TaskError

_PROGRESS = TypeAdapter(StageProgress)


def statuses(connection: Connection, service: Service, runs: Sequence[str]) -> list[SubmissionStatus]:
    """The status of each of these submissions."""
    left: dict[tuple[int, str], str] = {}
    return [status(connection, service, run, left) for run in runs]


def status(
    connection: Connection,
    service: Service,
    run: str,
    left: dict[tuple[int, str], str] | None = None,
    organizes: bool = False,
) -> SubmissionStatus:
    """The status of a submission, by the run of its first grading.

    The end of a grading with hidden tests is shown from its `visible_ns` on.

    Args:
        left: what accounts have left, by account and owner, as far as it was computed; the rest is added.
        organizes: whether an organizer reads it, who also sees the text of an error.

    Raises:
        Refusal: there is none.
    """
    row = _row(connection, run)
    visible = endings.is_shown(row, service.clock.now_ns())
    state: SubmissionState = row.state if visible else "leased"
    place, waits_for = _waiting(connection, service, row) if state == "queued" else (None, "")
    ended = visible and row.ended_ns is not None
    return SubmissionStatus(
        run=row.run,
        problem=row.problem,
        mode=row.mode,
        pool=row.pool,
        author=row.author,
        received_at=moment(row.received_ns),
        on_time=row.on_time,
        state=state,
        version=3 * row.version + ended + (ended and row.state == "recorded"),
        before=None if place is None else place.before,
        expected_s=_expected_s(service, row, state, place, waits_for),
        waits_for=waits_for,
        progress=_PROGRESS.validate_json(row.progress) if state == "leased" and row.progress else None,
        outcome=row.outcome if ended else None,
        score_s=float(row.score_s) if ended and row.score_s is not None else None,
        error=_error(row, organizes) if state == "failed" else "",
        left=_left(connection, service, row, {} if left is None else left),
    )


def overview(connection: Connection, service: Service) -> QueueStatus:
    """The whole queue, without names. What has ended counts as leased until its end is shown."""
    columns, hidden = gradings.c, gradings.c.visible_ns > service.clock.now_ns()
    state = case((hidden, "leased"), else_=columns.state).label("state")
    counted = select(columns.pool, state, func.count().label("number"), func.sum(columns.expected_ns).label("ns"))
    counted = counted.where(columns.state.in_(("queued", "leased")) | hidden).group_by(columns.pool, state)
    numbers = {(row.pool, row.state): row for row in connection.execute(counted)}
    paused = leases.paused(connection)
    active = [row for row in workers.alive(connection, service) if not row.paused]
    stuck = _without_version(connection, active)
    pools = {*service.project.settings.server.pools, *(row.pool for row in active), *(pool for pool, _ in numbers)}
    return QueueStatus(
        pools=tuple(
            _pool_status(
                pool, numbers, [row for row in active if row.pool == pool], paused is None, stuck.get(pool, ())
            )
            for pool in sorted(pools)
        ),
        paused=paused or "",
    )


def _pool_status(
    pool: str,
    numbers: Mapping[tuple[str, str], Row[Any]],
    active: Sequence[Row[Any]],
    running: bool,
    waits_for: Sequence[str],
) -> PoolStatus:
    queued, leased = numbers.get((pool, "queued")), numbers.get((pool, "leased"))
    devices = sum(row.devices for row in active)
    expected_ns = sum(row.ns for row in (queued, leased) if row is not None)
    return PoolStatus(
        pool=pool,
        workers=len(active),
        devices=devices,
        leased=0 if leased is None else leased.number,
        queued=0 if queued is None else queued.number,
        expected_s=expected_ns / devices / 1e9 if devices and expected_ns and running else None,
        waits_for=tuple(waits_for),
    )


def _without_version(connection: Connection, active: Sequence[Row[Any]]) -> dict[str, list[str]]:
    """Why submissions wait for a problem's version that no active worker of their pool has, by pool."""
    known = {pool: set[Version]() for pool in (row.pool for row in active)}
    unconfirmed = {pool: set[Version]() for pool in known}
    for worker in active:
        known[worker.pool] |= workers.versions(connection, worker)
        unconfirmed[worker.pool] |= workers.offered_versions(worker).keys()
    columns = gradings.c
    wanted = (columns.pool, columns.problem, columns.problem_sha256, columns.final)
    queued = select(*wanted, func.count().label("number")).where(columns.state == "queued").group_by(*wanted)
    numbers = Counter[tuple[str, str]]()
    for row in connection.execute(queued):
        version = Version(row.problem, row.problem_sha256, bool(row.final))
        if row.pool in known and version not in known[row.pool]:
            what = f"for a worker that has the server's version of {row.problem}"
            if version in unconfirmed[row.pool]:
                what = f"until an organizer confirms the private cases of {row.problem} (`kernelmark workers pin`)"
            numbers[row.pool, what] += row.number
    found: dict[str, list[str]] = {}
    for (pool, what), number in sorted(numbers.items()):
        found.setdefault(pool, []).append(f"{number} {what}")
    return found


def _row(connection: Connection, run: str) -> Row[Any]:
    found = connection.execute(
        select(gradings, submissions.c.author, submissions.c.received_ns, submissions.c.on_time)
        .join(submissions, submissions.c.run == gradings.c.submission)
        .where(gradings.c.run == run)
    ).one_or_none()
    if found is None:
        raise Refusal(404, "no-such-run", f"run {run}", "is not known here", "`kernelmark queue` lists yours")
    return found


def _waiting(connection: Connection, service: Service, row: Row[Any]) -> tuple[Forecast, str]:
    """The forecast of a queued grading, and why no worker can grade it at present."""
    pool = [worker for worker in workers.alive(connection, service) if worker.pool == row.pool]
    active = [worker for worker in pool if not worker.paused]
    devices = sum(worker.devices for worker in active)
    place = service.forecasts.of(row.pool, row.run, lambda: _forecast(connection, service, row.pool, max(devices, 1)))
    return place, _why(connection, row, pool, active)


def _why(connection: Connection, row: Row[Any], pool: Sequence[Row[Any]], active: Sequence[Row[Any]]) -> str:
    if (why := leases.paused(connection)) is not None:
        return f"the queue is paused: {why}"
    if (why := leases.paused(connection, row.author)) is not None:
        return f"submissions of {row.author} are paused: {why}"
    if not pool:
        return f"no worker with {row.pool} is connected"
    if not active:
        return f"the workers with {row.pool} are paused"
    version = Version(row.problem, row.problem_sha256, bool(row.final))
    capable = [worker for worker in active if version in workers.versions(connection, worker)]
    moved = ", which has changed since it was submitted" if row.moved else ""
    if not capable:
        return f"no worker has this version of {row.problem}{moved}"
    if all(worker.name in json.loads(row.refused_by) for worker in capable):
        return f"no worker could grade this version of {row.problem}"
    return ""


def _expected_s(
    service: Service, row: Row[Any], state: SubmissionState, place: Forecast | None, waits_for: str
) -> float | None:
    """In how many seconds it ends; None while nothing like it was graded."""
    problem = service.files.snapshot.problems.get(row.problem)
    if problem is None or row.expected_ns == reserved_ns(problem, row.mode):
        return None
    if place is not None:
        return None if waits_for else place.ends_ns / 1e9
    if state == "leased":
        return _remaining_ns(service, row) / 1e9
    return None


def _remaining_ns(service: Service, row: AnyRow) -> int:
    """How long a leased grading still takes."""
    used_ns = 0 if row.started_ns is None else service.clock.monotonic_ns() - row.started_ns
    return int(max(0, row.expected_ns - used_ns))


def _error(row: Row[Any], organizes: bool) -> str:
    """Why it has failed: the class of the error, or for organizers its text, which may quote private cases."""
    if row.error_class is None:
        return ""
    if not organizes:
        return f"it could not be graded ({row.error_class})"
    error = TaskError.model_validate_json(row.error)
    return f"{error.where}: {error.what}" if error.where else error.what


def _left(connection: Connection, service: Service, row: Row[Any], found: dict[tuple[int, str], str]) -> str:
    whose = row.account, row.owner
    if whose not in found:
        account = connection.execute(select(accounts).where(accounts.c.id == row.account)).one()
        found[whose] = limits.left(connection, service, account, row.owner)
    return found[whose]


def _forecast(connection: Connection, service: Service, pool: str, devices: int) -> dict[str, Forecast]:
    """The forecasts of all runs that are queued in a pool."""
    columns = gradings.c
    waiting = select(columns.job_class, columns.share, columns.position, columns.run, columns.expected_ns)
    waiting = waiting.where(columns.state == "queued", columns.pool == pool)
    jobs = [QueuedJob(*row) for row in connection.execute(waiting)]
    order = [*predicted_order(virtual_times.load(connection, pool), jobs)]
    leased = select(columns.started_ns, columns.expected_ns).where(columns.state == "leased", columns.pool == pool)
    leased = leased.order_by(columns.started_ns.is_(None), columns.granted_ns)
    busy = [_remaining_ns(service, row) for row in connection.execute(leased)]
    times = [*finish_times([job.expected_ns for job in order], busy, devices)]
    return {job.run: Forecast(before, end) for before, (job, end) in enumerate(zip(order, times, strict=True))}
