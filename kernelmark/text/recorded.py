"""Formats a list of recorded gradings for a terminal. Trusted, over untrusted text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING

from kernelmark.text.terminal import columns, counted, visible
from leaderboard.text.units import interval

if TYPE_CHECKING:
    from kernelmark.services.records import RecordedRun


def runs(found: Sequence[RecordedRun], total: int, author: str | None = None) -> Iterator[str]:
    """A row a grading: when, on what, whose, how it ended, its own time, and where it stands on the board."""
    if not found:
        yield "no grading was recorded yet" + (f" of the author {visible(author)}" if author is not None else "")
        return
    yield f"the newest {len(found)} of {total:,} recorded gradings" if total > len(found) else counted(total, "grading")
    rows = [("date (UTC)", "problem", "author", "submission", "outcome", "time per call", "board", "run")]
    for each in found:
        verdict = each.verdict
        rows.append(
            (
                f"{verdict.created_at.astimezone(UTC):%Y-%m-%d %H:%M}",
                visible(verdict.problem.slug),
                visible(verdict.submission.author),
                visible(verdict.submission.name),
                verdict.outcome.value.replace("_", " "),
                interval(verdict.score) if verdict.score else "",
                each.standing,
                verdict.run,
            )
        )
    yield from columns(rows)
