"""What waits in a pool and may go to one worker: the oldest job of each class and share. `leases.claim` asks it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, select

from kernelmark.server.database.tables import accounts, brakes, gradings, sources, submissions
from kernelmark.server.database.tables import workers as worker_rows
from kernelmark.server.queue import workers
from kernelmark.server.queue.order import Head
from kernelmark.server.queue.workers import Version

Share = tuple[str, str]
"""A class and whose turn a job takes."""
AnyRow = Row[*tuple[Any, ...]]

_columns = gradings.c
_KIND = _columns.job_class, _columns.share, _columns.problem, _columns.problem_sha256, _columns.final
_BARRED = select(accounts.c.id).join(brakes, brakes.c.subject == accounts.c.name)
_JOB = (
    select(
        *(_columns.run, _columns.expected_ns, _columns.problem, _columns.mode),
        *(submissions.c.effort, sources.c.language),
    )
    .join(submissions, submissions.c.run == _columns.submission)
    .join(sources, sources.c.sha256 == submissions.c.source)
    .where(
        _columns.state == "queued",
        _columns.pool == bindparam("pool"),
        _columns.choosy.in_((False, True)),
        _columns.job_class == bindparam("job_class"),
        _columns.share == bindparam("share"),
        _columns.position == bindparam("position"),
    )
)


class Waiting:
    """The queue as one worker sees it, within one change of the database."""

    def __init__(self, connection: Connection, worker: Row[Any]) -> None:
        self._connection, self._worker = connection, worker
        self._has = workers.versions(connection, worker)
        self._barred = list(connection.scalars(_BARRED))
        """The accounts whose submissions are not graded at present."""

    def heads(self, of: Share | None = None) -> dict[Share, Head]:
        """The oldest job that the worker may grade, of each class and share, or of one."""
        given: dict[str, object] = {"pool": self._worker.pool}
        if of is not None:
            given |= {"job_class": of[0], "share": of[1]}
        if self._barred:
            given["barred"] = self._barred
        kind = of is not None, bool(self._barred)
        rows = [*self._connection.execute(_oldest(*kind), given)]
        rows += [row for row in self._connection.execute(_choosy(*kind), given) if self._may_take(row)]
        found: dict[Share, Head] = {}
        for job_class, share, problem, sha256, final, position, *_ in rows:
            key = job_class, share
            if Version(problem, sha256, bool(final)) in self._has and (
                key not in found or position < found[key].position
            ):
                found[key] = Head(job_class, share, position)
        return found

    def job(self, head: Head) -> AnyRow:
        """Run, expected time, problem, mode, effort and language of a head."""
        return self._connection.execute(_JOB, {"pool": self._worker.pool, **head._asdict()}).one()

    def _may_take(self, job: AnyRow) -> bool:
        """Whether a job that some could not grade may go to this worker: not to one of those while there is another."""
        failed, refused = json.loads(job.workers_failed), json.loads(job.refused_by)
        if self._worker.name in refused:
            return False
        if self._worker.name not in failed:
            return True
        others = select(worker_rows.c.name).where(
            worker_rows.c.pool == self._worker.pool,
            worker_rows.c.paused == "",
            worker_rows.c.alive_ns >= self._worker.alive_ns - workers.ALIVE_NS,
            worker_rows.c.name.not_in([*failed, *refused]),
        )
        return self._connection.execute(others).first() is None


@lru_cache
def _oldest(of_one: bool, barred: bool) -> Select[Any]:
    oldest = select(*_KIND, func.min(_columns.position).label("position"))
    return _queued(oldest, of_one, barred).where(_columns.choosy.is_(False)).group_by(*_KIND)


@lru_cache
def _choosy(of_one: bool, barred: bool) -> Select[Any]:
    choosy = select(*_KIND, _columns.position, _columns.workers_failed, _columns.refused_by)
    return _queued(choosy, of_one, barred).where(_columns.choosy.is_(True))


def _queued(jobs: Select[Any], of_one: bool, barred: bool) -> Select[Any]:
    jobs = jobs.where(_columns.state == "queued", _columns.pool == bindparam("pool"))
    if of_one:
        jobs = jobs.where(_columns.job_class == bindparam("job_class"), _columns.share == bindparam("share"))
    if barred:
        jobs = jobs.where(_columns.account.not_in(bindparam("barred", expanding=True)))
    return jobs
