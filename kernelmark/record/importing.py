"""Imports the record of another copy of the project: `kernelmark import-ledger`. Trusted.

Lines are only appended and the existing chain is kept, so a server can continue to write the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import HarnessError, UsageError
from kernelmark.project.project import Project
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import publish
from kernelmark.record.records import ledger, whole
from leaderboard.record.archive import archive, stored
from leaderboard.record.entry import KINDS, VERDICT
from leaderboard.record.ledger import JsonlLedger


@dataclass
class ImportedLedger:
    """What was imported into one ledger."""

    problem: str
    entries: int = 0
    """How many lines were appended."""
    runs: tuple[str, ...] = ()
    """The runs of the appended verdicts."""
    error: str = ""
    """Why nothing was appended."""


def import_project(settings: Settings, other: Project) -> list[ImportedLedger]:
    """Append the entries that only the ledgers of another copy of this project have, with the sources.

    A ledger that cannot be imported as a whole is skipped, and its result says why.

    Raises:
        UsageError: it is this project itself.
        HarnessError: a board could not be written; the appended entries remain.
    """
    if other.root == settings.root:
        raise UsageError(str(other.root), "is this project itself", "name the folder of another copy of it")
    found = [_imported(settings, other, path.stem) for path in sorted(other.locate("results").glob("*.jsonl"))]
    for result in found:
        if result.entries:
            publish(settings, result.problem)
    return found


def _imported(settings: Settings, other: Project, slug: str) -> ImportedLedger:
    try:
        entries = list(JsonlLedger(other.locate("results") / f"{slug}.jsonl").entries())
        own = ledger(whole(settings), slug)
        verdicts = [entry.verdict for entry in entries if entry.kind == VERDICT]
        for verdict in verdicts:
            if own.find(verdict.run) is None:
                source = stored(other.locate("archive"), slug, verdict.submission)
                archive(settings.locate("archive"), slug, source)
        appended = own.take_in(entry for entry in entries if entry.kind in KINDS)
    except HarnessError as error:
        return ImportedLedger(slug, error=str(error))
    return ImportedLedger(slug, len(appended), tuple(entry.verdict.run for entry in appended if entry.kind == VERDICT))
