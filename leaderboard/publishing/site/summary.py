"""What the site keeps of every verdict: author, time, outcome and score.

`reading` reads lines through here, and caches what was parsed under the line's hash, so a line is parsed only once.
Trusted code over untrusted text: text is escaped where it is shown, not here.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.verdict import Outcome
from leaderboard.record.entry import Entry
from leaderboard.standings.excerpt import Question, parse_ranking_fields


class VerdictSummary(NamedTuple):
    """The few values of a verdict that histories and counts need; `score_ns` is None if it has no score."""

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
    verdict = parse_ranking_fields(entry)
    score_ns = verdict.score.median_ns if verdict.score is not None else None
    return VerdictSummary(
        entry.hash,
        verdict.run,
        verdict.submission.author,
        verdict.outcome.value,
        verdict.created_at.timestamp(),
        verdict.question,
        score_ns,
    )
