"""Writes what became of the hand-ins of a course: a table for a gradebook, and a feedback file each. Trusted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.verdict import Outcome

if TYPE_CHECKING:
    from kernelmark.text.report import Graded

COLUMNS = (
    "author", "team", "file", "outcome", "tests_right", "tests", "time_ns", "low_ns", "high_ns", "baseline", "speedup",
    "run", "message",
)  # fmt: skip


def table(results: Iterable[tuple[str, str, Graded]]) -> str:
    """CSV with a row for each author, with the team, if any; times and the speedup over the first baseline are those of
    accepted kernels.
    """
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(COLUMNS)
    for author, team, graded in results:
        row = (author, team, graded.path, graded.outcome, *_numbers(graded), graded.message)
        rows.writerow(map(_harmless, row))
    return written.getvalue()


def feedback(graded: Graded) -> str:
    """What the author may see: as the terminal has it. Hidden tests are told by their outcome alone."""
    return "\n".join(graded.lines()) + "\n"


def _numbers(graded: Graded) -> tuple[object, ...]:
    verdict = graded.verdict
    if verdict is None:
        return ("",) * 8
    right = sum(each.outcome is Outcome.ACCEPTED for each in verdict.tests)
    total = len(verdict.tests) + verdict.tests_not_run
    score, speedup = verdict.score, next(iter(verdict.speedups), None)
    times = (score.median_ns, score.low_ns, score.high_ns) if score else ("", "", "")
    over = (speedup.baseline, f"{speedup.ratio.median:.4g}") if speedup else ("", "")
    return (right, total, *times, *over, verdict.run)


def _harmless(value: object) -> object:
    """A text that a spreadsheet does not run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
