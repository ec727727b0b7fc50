"""Compares the ledgers with the database of a server that has stopped, and appends runs that they lost.

`kernelmark repair-ledger` calls it. Trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection

from harness.errors import HarnessError, LedgerError, UsageError
from kernelmark.project.project import Project
from kernelmark.project.settings import Settings
from kernelmark.record.records import ledger, whole
from kernelmark.server.accounts import audit
from kernelmark.server.clock import Clock
from kernelmark.server.database import migrations
from kernelmark.server.database.database import Database
from kernelmark.server.database.tables import gradings
from kernelmark.server.lock import DATABASE, FOLDER, served
from kernelmark.server.record import stores
from kernelmark.server.record.appending import GRADED, append

_AT_ONCE = 256  # runs whose verdicts are read at a time


@dataclass
class LedgerRepair:
    """What one ledger lacks, and what was appended to it."""

    problem: str
    damage: str
    """How it differs from the ledger that the server knew; empty if it only lacks runs."""
    missing: list[str] = field(default_factory=list)
    """The runs that the server has recorded and the ledger does not have."""
    lost: list[str] = field(default_factory=list)
    """Missing runs whose verdicts the server does not keep any more: a copy of the ledger may have them."""
    appended: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Why others could not be appended, by run."""


@contextmanager
def stopped(project: Project) -> Iterator[Database]:
    """The database of a project's server, which must not run.

    Raises:
        UsageError: it runs, or the project was never served.
    """
    file = project.root / FOLDER / DATABASE
    if not file.is_file():
        raise UsageError(str(project.root), "was never served: nothing is known of its ledgers", "see `verify`")
    with served(project, "kernelmark repair-ledger"):
        migrations.upgrade(file)
        with closing(Database(file)) as database:
            yield database


def compare(database: Database, settings: Settings) -> Iterator[LedgerRepair]:
    """Each ledger that is not as the server knew it, or lacks runs."""
    with database.read() as connection:
        heads, recorded = stores.heads_of(connection), stores.marked(connection)
    for slug in sorted({*heads, *recorded}):
        own, damage, runs = ledger(whole(settings), slug), "", recorded.get(slug, {})
        try:
            if slug in heads:
                own.refuse_another(heads[slug])
        except LedgerError as error:
            damage = error.what
        try:
            there = {run.run for run in stores.recorded(own, runs)}
        except LedgerError as error:
            yield LedgerRepair(slug, str(error))
            continue
        missing = [run for run in runs if run not in there]
        if damage or missing:
            yield LedgerRepair(slug, damage, missing, [run for run in missing if runs[run] is None])


def repair(database: Database, settings: Settings, found: LedgerRepair) -> None:
    """Append the runs that a ledger lacks, and let the server continue with the file as it is then.

    Raises:
        LedgerError: the ledger is broken, or cannot be appended to.
    """
    kept = [run for run in found.missing if run not in found.lost]
    for start in range(0, len(kept), _AT_ONCE):
        some = kept[start : start + _AT_ONCE]
        with database.read() as connection:
            rows = {row.run: row for row in connection.execute(GRADED.where(gradings.c.run.in_(some)))}
        for run in some:
            try:
                append(whole(settings), rows[run], None)
                found.appended.append(run)
            except LedgerError:
                raise
            except HarnessError as error:
                found.failed[run] = str(error)
    head, now_ns = ledger(whole(settings), found.problem).head(), Clock().now_ns()

    def change(connection: Connection) -> None:
        stores.remember(connection, found.problem, head)
        details = {"damage": found.damage, "appended": found.appended, "lost": found.lost}
        audit.note(connection, now_ns, None, "repair-ledger", found.problem, details)

    database.write(change).result()
