"""Recorded gradings as a list, for a terminal and for programs. Trusted, over untrusted text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, NamedTuple

from harness.verdict import Verdict
from kernelmark.text.terminal import INDENT, columns, counted, visible
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


def runs(found: Sequence[RecordedRun], total: int, author: str | None = None, *, width: int) -> Iterator[str]:
    """A row a grading: when, on what, whose, its own time or how it failed, and where it stands on the board.

    Where rows would be wider than `width`, each takes two lines, and names are shortened if they must be.
    """
    if not found:
        yield "no grading was recorded yet" + (f" of the author {visible(author)}" if author is not None else "")
        return
    yield f"the newest {len(found)} of {total:,} recorded gradings" if total > len(found) else counted(total, "grading")
    rows = [_Row("date (UTC)", "run", "problem", "submission", "author", "time or outcome", "board"), *map(_row, found)]
    lines = list(columns([(r.date, r.problem, r.author, r.submission, r.result, r.board, r.run) for r in rows]))
    if max(map(len, lines)) <= width:
        yield from lines
        return
    for first, row in zip(columns([(row.date, row.result, row.board) for row in rows]), rows, strict=True):
        yield first
        left = width - len(start := f"{INDENT}{row.run:<{len(found[0].verdict.run)}}  ")
        yield start + _names(row, left)


class _Row(NamedTuple):
    """What the list says of a grading."""

    date: str
    run: str
    problem: str
    submission: str
    author: str
    result: str
    board: str


def _row(each: RecordedRun) -> _Row:
    told = each.verdict
    return _Row(
        date=f"{told.created_at.astimezone(UTC):%Y-%m-%d %H:%M}",
        run=told.run,
        problem=visible(told.problem.slug),
        submission=visible(told.submission.name),
        author=visible(told.submission.author),
        result=interval(told.score) if told.score else told.outcome.value.replace("_", " "),
        board=each.standing,
    )


def _names(row: _Row, width: int) -> str:
    """The problem, the file and its author, shortened if there is no room: `show` has them in full."""
    if len(whole := f"{row.problem}: {row.submission} by {row.author}") <= width:
        return whole
    problem, author = _short(row.problem, width // 3), _short(row.author, width // 3)
    return f"{problem}: {_short(row.submission, width - len(f'{problem}:  by {author}'))} by {author}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: max(0, most - 1)]}…"
