"""What the site keeps of every ledger line: who, when, what became of it, and how fast it was.

`book` reads lines through here, and stores what was parsed under the line's hash, so that a line is parsed once in its
life. Trusted code over untrusted text: nothing is escaped here, everything is where it is shown.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.verdict import DeviceKind, Outcome
from leaderboard.entry import Entry
from leaderboard.excerpt import read
from leaderboard.ranking import TableKey

Question = tuple[str, int, DeviceKind, str, bool, bool]


class Line(NamedTuple):
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

    def key(self, problem: str) -> TableKey:
        """The table that it belongs to."""
        sha256, protocol, device_kind, device_name, isolated, interpreted = self.question
        return TableKey(
            problem=problem,
            problem_sha256=sha256,
            protocol=protocol,
            device_kind=device_kind,
            device_name=device_name,
            isolated=isolated,
            interpreted=interpreted,
        )


def line(entry: Entry) -> Line:
    """Read a verdict's entry.

    Raises:
        LedgerError: it was written by a version whose verdicts this one cannot read.
    """
    told = read(entry)
    ran = told.environment
    question = (
        told.problem.sha256, told.protocol, ran.device_kind, ran.device_name, ran.isolated, ran.interpreted,
    )  # fmt: skip
    score_ns = told.score.median_ns if told.score is not None else None
    return Line(
        entry.hash,
        told.run,
        told.submission.author,
        told.outcome.value,
        told.created_at.timestamp(),
        question,
        score_ns,
    )
