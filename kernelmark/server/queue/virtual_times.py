"""Reads and writes the virtual times of pools in the table `shares`; a change that grants or ends a lease calls it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from kernelmark.server.database.tables import gradings, shares
from kernelmark.server.queue.durations import LEAST_NS
from kernelmark.server.queue.order import INVERSE_WEIGHT, FlowHead, VirtualTimes
from kernelmark.service.submissions import JobClass

_LOAD = select(shares).where(shares.c.pool == bindparam("pool"))
_UPDATE = shares.update().where(
    shares.c.pool == bindparam("of_pool"),
    shares.c.job_class == bindparam("of_class"),
    shares.c.owner == bindparam("of_owner"),
)
_ADD = _UPDATE.values(virtual_ns=shares.c.virtual_ns + bindparam("more_ns"))


def load(connection: Connection, pool: str) -> VirtualTimes:
    """The virtual times of a pool."""
    found = VirtualTimes()
    for row in connection.execute(_LOAD, {"pool": pool}):
        if not row.job_class:
            found.present_ns, found.people_next = row.present_ns, bool(row.virtual_ns)
        elif not row.owner:
            times = found.of_class(row.job_class)
            times.virtual_ns, times.present_ns = row.virtual_ns, row.present_ns
        else:
            found.of_class(row.job_class).owners[row.owner] = row.virtual_ns
    return found


def save(connection: Connection, pool: str, times: VirtualTimes, charged: Iterable[FlowHead]) -> None:
    """Write what has changed since `load` by charging the jobs of these flows."""
    flows = {(head.job_class, head.share) for head in charged}
    _write(connection, pool, "", "", int(times.people_next), times.present_ns)
    for job_class in {job_class for job_class, _ in flows}:
        of_class = times.of_class(job_class)
        _write(connection, pool, job_class, "", of_class.virtual_ns, of_class.present_ns)
    for job_class, share in flows:
        _write(connection, pool, job_class, share, times.of_class(job_class).owners[share], 0)


def settle(connection: Connection, grading: Row[Any], used_ns: int | None) -> None:
    """Charge what a grading has used instead of what it was expected to take when it was leased.

    Args:
        grading: if it is not leased, nothing was charged for it.
        used_ns: None: its lease has ended without a result, so nothing is charged.
    """
    charged_ns = grading.expected_ns if grading.state == "leased" else 0
    more_ns = (0 if used_ns is None else max(used_ns, LEAST_NS)) - charged_ns
    job_class: JobClass = grading.job_class
    for owner, nanoseconds in (("", more_ns * INVERSE_WEIGHT[job_class]), (grading.share, more_ns)):
        row = {"of_pool": grading.pool, "of_class": job_class, "of_owner": owner}
        connection.execute(_ADD, {**row, "more_ns": nanoseconds})


def forget_idle(connection: Connection) -> None:
    """Delete the rows of owners whose next job starts at the present time anyway.

    Not while a job of theirs is graded: what it takes beyond what was expected is added to the row when it ends.
    """
    of_class = shares.alias()
    present = select(of_class.c.present_ns).where(
        of_class.c.pool == shares.c.pool, of_class.c.job_class == shares.c.job_class, of_class.c.owner == ""
    )
    idle = shares.c.virtual_ns <= present.scalar_subquery()
    graded = select(gradings.c.run).where(
        gradings.c.state == "leased",
        gradings.c.pool == shares.c.pool,
        gradings.c.job_class == shares.c.job_class,
        gradings.c.share == shares.c.owner,
    )
    connection.execute(shares.delete().where(shares.c.owner != "", idle, ~graded.exists()))


def _write(connection: Connection, pool: str, job_class: str, owner: str, virtual_ns: int, present_ns: int) -> None:
    values = {"virtual_ns": virtual_ns, "present_ns": present_ns}
    row = {"of_pool": pool, "of_class": job_class, "of_owner": owner}
    if not connection.execute(_UPDATE, {**row, **values}).rowcount:
        connection.execute(shares.insert(), {"pool": pool, "job_class": job_class, "owner": owner, **values})
