"""Recorded gradings as a list, for a terminal and for programs. Trusted, over untrusted text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from harness.verdict import Verdict
from kernelmark.text.terminal import columns, counted, visible
from leaderboard.text.units import interval


@dataclass(frozen=True)
class RecordedRun:
    """A recorded grading, and where it stands: `rank 2 of 7`, why it has no rank; empty if no row is about it."""

    verdict: Verdict
    standing: str

    def document(self) -> dict[str, Any]:
        """For programs: the fields of a list; `kernelmark show RUN --format json` has the whole verdict."""
        told = self.verdict
        score = told.score.model_dump(mode="json") if told.score else None
        return {
            "run": told.run,
            "created_at": told.created_at.isoformat(),
            "problem": told.problem.slug,
            "author": told.submission.author,
            "submission": told.submission.name,
            "sha256": told.submission.sha256,
            "outcome": told.outcome.value,
            "device": told.environment.device_name,
            "score": score,
            "standing": self.standing,
        }


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
