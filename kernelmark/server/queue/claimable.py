"""Finds the queued jobs that one worker may claim: the oldest of each class and share. `leases.claim` calls it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, select

from kernelmark.server.database.database import AnyRow
from kernelmark.server.database.tables import accounts, gradings, pauses, sources, submissions
from kernelmark.server.database.tables import workers as worker_rows
from kernelmark.server.queue import workers
from kernelmark.server.queue.order import FlowHead
from kernelmark.server.queue.workers import Version

Flow = tuple[str, str]
"""A class and a share: the jobs that wait in one line."""

_columns = gradings.c
_GROUP = _columns.job_class, _columns.share, _columns.problem, _columns.problem_sha256, _columns.final
_PAUSED_ACCOUNTS = select(accounts.c.id).join(pauses, pauses.c.subject == accounts.c.name)
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


class ClaimableJobs:
    """The queue as one worker sees it, within one change of the database."""

    def __init__(self, connection: Connection, worker: Row[Any]) -> None:
        self._connection, self._worker = connection, worker
        self._versions = workers.versions(connection, worker)
        self._paused_accounts = list(connection.scalars(_PAUSED_ACCOUNTS))

    def heads(self, flow: Flow | None = None) -> dict[Flow, FlowHead]:
        """The oldest job that the worker may claim, of each flow or of one."""
        values: dict[str, object] = {"pool": self._worker.pool}
        if flow is not None:
            values |= {"job_class": flow[0], "share": flow[1]}
        if self._paused_accounts:
            values["paused"] = self._paused_accounts
        conditions = flow is not None, bool(self._paused_accounts)
        rows = [*self._connection.execute(_oldest(*conditions), values)]
        rows += [row for row in self._connection.execute(_choosy(*conditions), values) if self._may_claim(row)]
        found: dict[Flow, FlowHead] = {}
        for job_class, share, problem, sha256, final, position, *_ in rows:
            oldest = found.get((job_class, share))
            if Version(problem, sha256, bool(final)) in self._versions and (
                oldest is None or position < oldest.position
            ):
                found[job_class, share] = FlowHead(job_class, share, position)
        return found

    def job(self, head: FlowHead) -> AnyRow:
        """Run, expected time, problem, mode, effort and language of a head."""
        return self._connection.execute(_JOB, {"pool": self._worker.pool, **head._asdict()}).one()

    def _may_claim(self, job: AnyRow) -> bool:
        """Whether the worker may have a choosy job, which others could not grade.

        A worker that could not grade a job itself may have it only if there is no other one.
        """
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


@cache
def _oldest(one_flow: bool, some_paused: bool) -> Select[Any]:
    oldest = select(*_GROUP, func.min(_columns.position).label("position"))
    return _queued(oldest, one_flow, some_paused).where(_columns.choosy.is_(False)).group_by(*_GROUP)


@cache
def _choosy(one_flow: bool, some_paused: bool) -> Select[Any]:
    choosy = select(*_GROUP, _columns.position, _columns.workers_failed, _columns.refused_by)
    return _queued(choosy, one_flow, some_paused).where(_columns.choosy.is_(True))


def _queued(jobs: Select[Any], one_flow: bool, some_paused: bool) -> Select[Any]:
    """Only conditions that are needed: the index of the queue has no accounts."""
    jobs = jobs.where(_columns.state == "queued", _columns.pool == bindparam("pool"))
    if one_flow:
        jobs = jobs.where(_columns.job_class == bindparam("job_class"), _columns.share == bindparam("share"))
    if some_paused:
        jobs = jobs.where(_columns.account.not_in(bindparam("paused", expanding=True)))
    return jobs
