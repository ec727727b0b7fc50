"""What the site keeps of every ledger line: who, when, what became of it, and how fast it was.

`book` reads lines through here, and stores what was parsed under the line's hash, so that a line is parsed once in its
life. Trusted code over untrusted text: nothing is escaped here, everything is where it is shown.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.verdict import Outcome
from leaderboard.record.entry import Entry
from leaderboard.standings.excerpt import Question, parse_ranking_fields


class VerdictSummary(NamedTuple):
    """One verdict, in the few values that histories and counts are made of; absent where it has no score."""

    hash: str
    run: str
    author: str
    outcome: str
    created_s: float
    question: Question
    score_ns: int | None

    @property
    def accepted(self) -> bool:
        return self.outcome == Outcome.ACCEPTED.value and self.score_ns is not None


def line(entry: Entry) -> VerdictSummary:
    """Read a verdict's entry.

    Raises:
        LedgerError: it was written by a version whose verdicts this one cannot read.
    """
    told = parse_ranking_fields(entry)
    score_ns = told.score.median_ns if told.score is not None else None
    return VerdictSummary(
        entry.hash,
        told.run,
        told.submission.author,
        told.outcome.value,
        told.created_at.timestamp(),
        told.question,
        score_ns,
    )
