"""Recorded gradings as a list, for a terminal and for programs. Trusted, over untrusted text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from harness.verdict import Verdict
from kernelmark.text.terminal import Line, columns, counted, visible
from leaderboard.text.units import interval

_HEAD = ("date (UTC)", "run", "problem", "submission", "author", "time or outcome", "board")


@dataclass(frozen=True)
class RecordedRun:
    """A recorded grading, and where it stands: `rank 2 of 7`, why it has no rank; empty if no row is about it."""

    verdict: Verdict
    standing: str

    def document(self) -> dict[str, Any]:
        """For programs: the fields of a list; `kernelmark show RUN --format json` has the whole verdict."""
        verdict = self.verdict
        return {
            "run": verdict.run,
            "created_at": verdict.created_at.isoformat(),
            "problem": verdict.problem.slug,
            "author": verdict.submission.author,
            "submission": verdict.submission.name,
            "sha256": verdict.submission.sha256,
            "outcome": verdict.outcome.value,
            "device": verdict.environment.device_name,
            "score": verdict.score.model_dump(mode="json") if verdict.score else None,
            "standing": self.standing,
        }

    def cells(self) -> tuple[str, ...]:
        """A row of the list."""
        verdict, submission = self.verdict, self.verdict.submission
        return (
            f"{verdict.created_at.astimezone(UTC):%Y-%m-%d %H:%M}",
            verdict.run,
            *map(visible, (verdict.problem.slug, submission.name, submission.author)),
            interval(verdict.score) if verdict.score else verdict.outcome.value.replace("_", " "),
            self.standing,
        )


def runs(found: Sequence[RecordedRun], total: int, author: str | None = None) -> Iterator[str]:
    """A row a grading: when, on what, whose, its own time or how it failed, and where it stands on the board."""
    if not found:
        yield "no grading was recorded yet" + (f" of the author {visible(author)}" if author is not None else "")
        return
    newest = f"the newest {len(found)} of {total:,} recorded gradings"
    yield Line(newest if total > len(found) else counted(total, "grading"), "bold")
    yield from columns([run.cells() for run in found], head=_HEAD)
