"""Appends a verdict to its ledger, and its source to the archive. The recorder and `repairing` call it.

Trusted.
"""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import select

from harness.shared.document import parse_json
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.lateness import Remark
from kernelmark.record.records import ledger
from kernelmark.server.database.tables import gradings, sources, submissions
from kernelmark.server.record.sources import submission
from kernelmark.server.record.stores import LedgerRun
from leaderboard.record.archive import archive
from leaderboard.record.chain import Head

_log = logging.getLogger("kernelmark.server.record")
GRADED = (
    select(
        gradings.c.run,
        gradings.c.problem,
        gradings.c.job_class,
        gradings.c.queued_ns,
        gradings.c.answer,
        submissions.c.name,
        submissions.c.author,
        submissions.c.remark,
        sources.c.language,
        sources.c.source,
        sources.c.beside,
    )
    .join(submissions, submissions.c.run == gradings.c.submission)
    .join(sources, sources.c.sha256 == submissions.c.source)
)
"""Selects what `append` needs of gradings."""


def append(settings: Settings, row: Any, head: Head | None) -> tuple[LedgerRun, Head | None]:
    """Archive a source and append its verdict, unless the ledger has the run.

    Args:
        settings: with which all lines of a ledger are read.
        row: of `GRADED`.
        head: up to where the ledger is known not to have the run; None: it is searched as a whole.

    Returns:
        The run as the ledger has it, and how far the ledger goes.

    Raises:
        LedgerError: the ledger was changed, or cannot be appended to.
        HarnessError: the source cannot be archived.
    """
    own = ledger(settings, row.problem)
    archive(settings.locate("archive"), row.problem, submission(row))
    remark = Remark(**parse_json(row.remark)).event(row.run) if row.remark else None
    exempt = row.job_class == "regrade"
    entry = own.append(Verdict.from_json(row.answer), remark, exempt=exempt, unless_run=True, head=head)
    for warning in entry.warnings:
        _log.warning("%s", warning)
    return LedgerRun.of(entry, row.answer), own.head()
