"""The virtual times of pools, as the database keeps them; a change that grants or ends a lease calls it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from kernelmark.server.database.tables import shares
from kernelmark.server.queue.durations import LEAST_NS
from kernelmark.server.queue.order import COST, Head, Shares
from kernelmark.service.submissions import JobClass

_LOAD = select(shares).where(shares.c.pool == bindparam("pool"))
_UPDATE = shares.update().where(
    shares.c.pool == bindparam("of"),
    shares.c.job_class == bindparam("of_class"),
    shares.c.owner == bindparam("of_owner"),
)
_CORRECT = _UPDATE.values(virtual_ns=shares.c.virtual_ns + bindparam("more_ns"))


def load(connection: Connection, pool: str) -> Shares:
    """The virtual times of a pool."""
    found = Shares()
    for row in connection.execute(_LOAD, {"pool": pool}):
        if not row.job_class:
            found.present_ns, found.people_next = row.present_ns, bool(row.virtual_ns)
        elif not row.owner:
            times = found.of(row.job_class)
            times.virtual_ns, times.present_ns = row.virtual_ns, row.present_ns
        else:
            found.of(row.job_class).owners[row.owner] = row.virtual_ns
    return found


def save(connection: Connection, pool: str, now: Shares, taken: Iterable[Head]) -> None:
    """Write what has changed by taking these."""
    _write(connection, pool, "", "", int(now.people_next), now.present_ns)
    for job_class in {head.job_class for head in taken}:
        times = now.of(job_class)
        _write(connection, pool, job_class, "", times.virtual_ns, times.present_ns)
    for job_class, share in {(head.job_class, head.share) for head in taken}:
        _write(connection, pool, job_class, share, now.of(job_class).owners[share], 0)


def settle(connection: Connection, grading: Row[Any], used_ns: int | None) -> None:
    """Charge what a grading has used instead of what it was expected to take when it was leased.

    Args:
        grading: if it is not leased, nothing was charged for it.
        used_ns: None: its lease has ended without a result, so nothing is charged.
    """
    charged_ns = grading.expected_ns if grading.state == "leased" else 0
    more_ns = (0 if used_ns is None else max(used_ns, LEAST_NS)) - charged_ns
    job_class: JobClass = grading.job_class
    for owner, nanoseconds in (("", more_ns * COST[job_class]), (grading.share, more_ns)):
        row = {"of": grading.pool, "of_class": job_class, "of_owner": owner}
        connection.execute(_CORRECT, {**row, "more_ns": nanoseconds})


def forget_the_idle(connection: Connection) -> None:
    """Drop the owners who start at the present time anyway."""
    of_class = shares.alias()
    present = select(of_class.c.present_ns).where(
        of_class.c.pool == shares.c.pool, of_class.c.job_class == shares.c.job_class, of_class.c.owner == ""
    )
    idle = shares.c.virtual_ns <= present.scalar_subquery()
    connection.execute(shares.delete().where(shares.c.owner != "", idle))


def _write(connection: Connection, pool: str, job_class: str, owner: str, virtual_ns: int, present_ns: int) -> None:
    values = {"virtual_ns": virtual_ns, "present_ns": present_ns}
    if not connection.execute(_UPDATE, {"of": pool, "of_class": job_class, "of_owner": owner, **values}).rowcount:
        connection.execute(shares.insert(), {"pool": pool, "job_class": job_class, "owner": owner, **values})
