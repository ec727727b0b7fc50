"""The thread that maintains the queue: leases that expired, problems that have changed, what is not needed any more.

`serve` starts it, after `prepare` and before it serves. An error is logged, and the thread goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy import Connection, bindparam, select

from kernelmark.server.database.database import after_commit
from kernelmark.server.database.tables import accounts, gradings, sources, submissions
from kernelmark.server.queue import endings, leases, virtual_times
from kernelmark.server.queue.project_files import DAY_NS
from kernelmark.server.service import Service

_EVERY_S = 1.0
_FILES_EVERY, _TOTALS_EVERY = 60, 5  # rounds
_KEPT_NS = 30 * DAY_NS
_BANNED = select(accounts.c.id).where(accounts.c.state == "banned")
_OPEN = select(gradings).where(
    gradings.c.account.in_(bindparam("accounts", expanding=True)), gradings.c.state.in_(("queued", "leased"))
)
_SHOWN = select(gradings.c.run).where(
    gradings.c.visible_ns > bindparam("after"), gradings.c.visible_ns <= bindparam("until")
)
_LOG = logging.getLogger("kernelmark.server")


class Sweeper:
    """Sweeps each second until it is closed."""

    def __init__(self, service: Service) -> None:
        self._service, self._stop, self._rounds = service, threading.Event(), 0
        self._shown_ns = service.clock.now_ns()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def prepare(self) -> None:
        """Read the project's files, and restart the timers of all leases. The server may serve afterwards.

        Raises:
            HarnessError: the project cannot be read.
        """
        self._service.files.refresh(self._service.database)
        self._change(leases.restart_timers)
        self._change(move_to_present_versions)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def sweep(self) -> None:
        """One round, as each second."""
        files, database = self._service.files, self._service.database
        self._change(leases.expire)
        self._change(cancel_of_banned)
        self._show_ends()
        if self._rounds % _FILES_EVERY == 0:
            files.refresh(database)
            self._change(move_to_present_versions)
            self._change(forget_old)
            database.write(virtual_times.forget_idle).result()
        elif self._rounds % _TOTALS_EVERY == 0:
            files.refresh_totals(database)
        self._rounds += 1

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.sweep()
            except Exception:  # noqa: BLE001 - the boundary of the thread
                _LOG.exception("the queue could not be swept")

    def _change(self, change: Callable[[Connection, Service], None]) -> None:
        """Make a change of the database. If it finds nothing to change, nothing is written to the disk."""
        self._service.database.write(lambda connection: change(connection, self._service)).result()

    def _show_ends(self) -> None:
        """Wake the requests that wait for gradings whose end may be seen now."""
        service, until_ns = self._service, self._service.clock.now_ns()
        with service.database.read() as connection:
            runs = connection.scalars(_SHOWN, {"after": self._shown_ns, "until": until_ns}).all()
        self._shown_ns = until_ns
        if runs:
            service.changes.notify("queue", *(f"run:{run}" for run in runs))


def move_to_present_versions(connection: Connection, service: Service) -> None:
    """Have queued jobs graded with the problems as the server has them now; their owners see that they changed."""
    for slug, problem in service.files.snapshot.problems.items():
        old = gradings.c.problem_sha256 != problem.sha256
        moved = gradings.update().where(gradings.c.state == "queued", gradings.c.problem == slug, old)
        moved = moved.values(problem_sha256=problem.sha256, moved=True, version=gradings.c.version + 1)
        if connection.execute(moved).rowcount:
            after_commit(connection, lambda: service.changes.notify("queue", "jobs"))


def cancel_of_banned(connection: Connection, service: Service) -> None:
    """Cancel the queued and leased gradings of banned accounts."""
    if banned := list(connection.scalars(_BANNED)):
        for grading in connection.execute(_OPEN, {"accounts": banned}).all():
            endings.cancel_grading(connection, service, grading)


def forget_old(connection: Connection, service: Service) -> None:
    """Drop sources that were not needed for 30 days, and answers of gradings that ended 30 days ago."""
    before_ns = service.clock.now_ns() - _KEPT_NS
    needed = select(submissions.c.source).join(gradings, gradings.c.submission == submissions.c.run)
    needed = needed.where(gradings.c.state.in_(("queued", "leased", "graded", "failed")))
    old = (sources.c.last_needed_ns < before_ns) & sources.c.sha256.not_in(needed)
    connection.execute(sources.update().where(old).values(source=b"", beside="[]", bytes=0))
    answered = gradings.c.state.in_(("recorded", "done")) & (gradings.c.ended_ns < before_ns)
    connection.execute(gradings.update().where(answered, gradings.c.answer.is_not(None)).values(answer=None))
