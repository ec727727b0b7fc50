"""Records graded verdicts in the ledgers. Trusted.

The ledger is the record. `serve` starts one `Recorder`, a thread. For each graded submission it archives the source,
appends the verdict to the ledger unless the run is there, and marks the grading as recorded. Each step can be repeated,
so a crash at any point is harmless.

**The two stores may disagree**, after one of them was restored from a copy. A run that the ledger has is recorded with
the ledger's verdict, whatever the database says; a different answer is kept apart. The database has the head of each
ledger: if the file no longer begins with it, nothing is appended until `kernelmark repair-ledger` was run. All this is
checked once before any job can be claimed (`ready`), and for each run again before it is appended.

The end of a grading with hidden tests is shown at a multiple of five seconds. Its verdict is appended then, not before,
so that neither a board nor the head of a ledger reveals the end earlier.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, func, or_, select, tuple_, update

from harness.errors import HarnessError, LedgerError
from kernelmark.record.publishing import Publisher
from kernelmark.record.records import ledger, ledgers, whole
from kernelmark.server.database.tables import gradings
from kernelmark.server.record import boards, stores
from kernelmark.server.record.appending import GRADED, append
from kernelmark.server.record.stores import LedgerRun
from kernelmark.server.service import Service
from leaderboard.record.chain import Head

RETRY_NS = 60 * 10**9
"""How long after a failure a run is recorded again, in nanoseconds."""
_TOGETHER = 32  # gradings that are recorded together
_AT_ONCE = 256  # runs that the comparison of the stores marks in one change
_REASON = 2000  # characters of why something could not be recorded that are kept
_log = logging.getLogger("kernelmark.server.record")


class Recorder:
    """Made and closed by the process that serves; any thread may call its public methods."""

    def __init__(self, service: Service) -> None:
        self.ready = threading.Event()
        """Set once the two stores were compared. Before that, no claim may be answered."""
        self._service, self._settings = service, whole(service.project.settings)
        self._publisher = Publisher(boards.settings_of(service))
        self._changed, self._due, self._closed = threading.Condition(), False, False
        self._stopped = dict[str, str]()
        self._searched = dict[str, Head]()
        """Up to where each ledger is known to have no run that is not marked as recorded; new runs are random."""
        self._tried_ns = service.clock.monotonic_ns()
        self._busy_since_ns: int | None = None
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Compare the stores, then record verdicts until it is closed."""
        self._thread.start()

    def due(self) -> None:
        """Wake the recorder: a verdict was committed."""
        with self._changed:
            self._due = True
            self._changed.notify_all()

    def close(self) -> None:
        """Record all verdicts, and end. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        self._publisher.close()

    def problems(self) -> dict[str, str]:
        """Why nothing can be recorded at present, by the slug of the problem; under "" for all of them."""
        found, since = dict(self._stopped), self._busy_since_ns
        if self._thread.ident is not None and not self._thread.is_alive():
            found[""] = "the recorder has ended"
        elif since is not None and self._service.clock.monotonic_ns() - since > RETRY_NS:
            found[""] = "the recorder is behind"
        return found

    def compare_stores(self) -> None:
        """Mark every run that a ledger has as recorded, and stop recording in ledgers that were changed."""
        with self._service.database.read() as connection:
            unrecorded = stores.unrecorded(connection)
        for slug, runs in sorted(unrecorded.items()):
            try:
                found = [*stores.recorded(ledger(self._settings, slug), runs)]
            except LedgerError as error:
                self._stop(slug, error)
                continue
            for start in range(0, len(found), _AT_ONCE):
                self._mark(found[start : start + _AT_ONCE])
        self._check_heads()

    def record_due(self, *, again: bool = False, early: bool = False) -> None:
        """Record the verdicts whose end may be seen.

        Args:
            again: also those that could not be recorded before.
            early: also those whose end may not be seen yet: the server ends, and shows nothing any more.
        """
        if again:
            self._stopped = {}
            self._check_heads()
        after: tuple[int, str] | None = None
        while rows := self._graded(after, again=again, early=early):
            after = rows[-1].queued_ns, rows[-1].run
            self._record([row for row in rows if row.problem not in self._stopped])

    def _run(self) -> None:
        while not self.ready.is_set():
            try:
                self.compare_stores()
                self.ready.set()
            except Exception:  # noqa: BLE001 - this thread is the boundary; nothing is claimed until it has succeeded
                _log.exception("the database could not be compared with the ledgers")
                if self._wait(1.0):
                    return
        ended = False
        while not ended:
            ended = self._closed
            now = self._busy_since_ns = self._service.clock.monotonic_ns()
            again = now - self._tried_ns >= RETRY_NS
            self._tried_ns = now if again else self._tried_ns
            try:
                self.record_due(again=again, early=ended)
            except Exception:  # noqa: BLE001 - as above; what is left is tried at the next round
                _log.exception("what was graded could not be recorded")
            self._busy_since_ns = None
            if not ended:
                self._wait(self._seconds_until_next())

    def _wait(self, seconds: float) -> bool:
        """Wait until something is due, and say whether it was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._due or self._closed, seconds)
            self._due = False
            return self._closed

    def _seconds_until_next(self) -> float:
        """How long there is nothing to record, unless another verdict comes."""
        now, columns = self._service.clock.now_ns(), gradings.c
        waiting = select(func.min(columns.visible_ns)).where(columns.state == "graded", columns.visible_ns > now)
        with self._service.database.read() as connection:
            visible_ns = connection.scalar(waiting)
        return RETRY_NS / 1e9 if visible_ns is None else min(RETRY_NS, visible_ns - now) / 1e9

    def _graded(self, after: tuple[int, str] | None, *, again: bool, early: bool) -> Sequence[Any]:
        """The next gradings to record, in the order in which they were queued."""
        columns, wanted = gradings.c, [gradings.c.state == "graded"]
        if not again:
            wanted.append(columns.stuck.is_(None))
        if not early:
            wanted.append(or_(columns.visible_ns.is_(None), columns.visible_ns <= self._service.clock.now_ns()))
        if after is not None:
            wanted.append(tuple_(columns.queued_ns, columns.run) > tuple_(*after))
        query = GRADED.where(*wanted).order_by(columns.queued_ns, columns.run).limit(_TOGETHER)
        with self._service.database.read() as connection:
            return connection.execute(query).all()

    def _record(self, rows: Sequence[Any]) -> None:
        with self._service.database.read() as connection:
            known = stores.heads_of(connection)
        made, heads = list[LedgerRun](), dict[str, Head]()
        for slug in dict.fromkeys(row.problem for row in rows):
            some = [row for row in rows if row.problem == slug]
            self._record_in(slug, some, known.get(slug), made, heads)
        self._mark(made, heads)
        self._searched |= heads

    def _record_in(
        self, slug: str, rows: Sequence[Any], known: Head | None, made: list[LedgerRun], heads: dict[str, Head]
    ) -> None:
        """Record gradings in one ledger. Adds its runs to `made`, and how far it goes to `heads`."""
        own, left, head = ledger(self._settings, slug), [*rows], self._searched.pop(slug, None)
        try:
            if head is None:
                head = own.head()
                there = {run.run: run for run in stores.recorded(own, {row.run: row.answer for row in rows})}
                made += there.values()
                left = [row for row in rows if row.run not in there]
                if known is not None:
                    own.refuse_another(known)
            while left:
                try:
                    run, head = append(self._settings, left[0], head)
                    made.append(run)
                except LedgerError:
                    raise
                except Exception as error:  # noqa: BLE001 - one row, whatever it holds, keeps no other from the record
                    self._set_aside(left[0].run, error)
                del left[0]
        except LedgerError as error:
            self._stop(slug, error)
            if left:
                self._set_aside(left[0].run, error)
            return
        if head is not None:
            heads[slug] = head

    def _mark(self, made: Sequence[LedgerRun], heads: Mapping[str, Head] = MappingProxyType({})) -> None:
        now = self._service.clock.now_ns()

        def change(connection: Connection) -> None:
            stores.mark(connection, now, made)
            for slug, head in heads.items():
                stores.remember(connection, slug, head)

        self._service.database.write(change).result()
        for run in (run for run in made if run.differs):
            _log.error("run %s: the ledger has another verdict than the answer, which is kept aside", run.run)
        self._service.changes.notify(*(f"run:{run.run}" for run in made), "queue")
        if heads:
            self._publisher.settings = boards.settings_of(self._service)
        for slug in heads:
            self._publisher.due(slug)

    def _set_aside(self, run: str, error: Exception) -> None:
        _log.error("run %s cannot be recorded: %s", run, error, exc_info=not isinstance(error, HarnessError))
        reason = (
            update(gradings)
            .where(gradings.c.run == run, gradings.c.state == "graded")
            .values(stuck=str(error)[:_REASON])
        )

        def change(connection: Connection) -> None:
            connection.execute(reason)

        self._service.database.write(change).result()

    def _check_heads(self) -> None:
        """Store how far each ledger goes, and stop recording in those that do not begin with their known head."""
        with self._service.database.read() as connection:
            known = stores.heads_of(connection)
        slugs = {*known, *(own.path.stem for own in ledgers(self._settings))}
        for slug in sorted(slugs):
            own = ledger(self._settings, slug)
            try:
                if slug in known:
                    own.refuse_another(known[slug])
                head = own.head()
            except LedgerError as error:
                self._stop(slug, error)
                continue
            if head is not None and head != known.get(slug):
                self._mark((), {slug: head})

    def _stop(self, slug: str, error: LedgerError) -> None:
        self._stopped = {**self._stopped, slug: str(error)}
        _log.error("recording of %s has stopped: %s", slug, error)
