"""Appends a verdict with its source to the record; `publishing` writes the board after it.

The Python API and the command line call it. Trusted. The settings say where each file is.
"""

from __future__ import annotations

from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.records import ledger
from kernelmark.text.terminal import warn
from leaderboard.record.archive import archive
from leaderboard.record.moderation import Moderation


def record(
    settings: Settings,
    submission: Submission,
    verdict: Verdict,
    remark: Moderation | None = None,
    *,
    exempt: bool = False,
) -> None:
    """Archive the source and append the verdict to the problem's ledger; the cost does not grow with the ledger.

    `remark` is an event about it, such as one that keeps it from ranking. One that is `exempt` does not count towards
    its author's limits a day.

    Raises:
        HarnessError: a file could not be written, and the verdict is not recorded.
    """
    archive(settings.locate("archive"), verdict.problem.slug, submission)
    entry = ledger(settings, verdict.problem.slug).append(verdict, remark, exempt=exempt)
    for warning in entry.warnings:
        warn(warning)
