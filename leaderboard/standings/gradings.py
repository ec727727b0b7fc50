"""Every recorded grading, accepted or not, and what the record says about one run. Trusted; pure.

The ranking has accepted gradings only; `kernelmark regrade` reads the others here, and `kernelmark show` the facts
about a run that are not in its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.verdict import Verdict
from leaderboard.record import pooling
from leaderboard.record.current import Current
from leaderboard.record.fields import Facts, VerdictFields
from leaderboard.record.lines import Lines
from leaderboard.record.moderation import ModeratedState, Moderation, standing, state
from leaderboard.record.pooling import PooledSource
from leaderboard.standings.staleness import Present, Stale


@dataclass(frozen=True)
class RecordedGrading:
    """One recorded verdict; `moderation` has the events that concern it and were not undone, oldest first."""

    verdict: VerdictFields
    seq: int
    moderation: tuple[Moderation, ...]
    stale: Stale | None

    @property
    def run(self) -> str:
        return self.verdict.run

    @property
    def author(self) -> str:
        return self.verdict.author

    @property
    def submission(self) -> str:
        return self.verdict.name

    @property
    def sha256(self) -> str:
        return self.verdict.sha256

    @property
    def state(self) -> ModeratedState:
        return state(self.moderation)


def gradings(lines: Lines, current: Current) -> list[RecordedGrading]:
    """All gradings, in the order of the ledger.

    Raises:
        LedgerError: an event was written by a version that this one cannot read.
    """
    facts, present = lines.facts(), Present(current, lines)
    events = facts.moderation()
    said = ((v, standing(events.of((v.run,), v.sha256, v.author))) for v in facts.verdicts)
    return [RecordedGrading(v, v.seq, of, present.mark(v)) for v, of in said]


def newest(of: Iterable[RecordedGrading]) -> list[RecordedGrading]:
    """The newest grading of each author's source, without sources that have a disqualified grading."""
    last: dict[tuple[str, str], RecordedGrading] = {}
    out: set[tuple[str, str]] = set()
    for grading in sorted(of, key=lambda grading: grading.verdict.created_at):
        file = grading.author, grading.sha256
        last[file] = grading
        if grading.state == "disqualified":
            out.add(file)
    return [grading for file, grading in last.items() if file not in out]


def moderation(facts: Facts, verdict: Verdict) -> tuple[Moderation, ...]:
    """All events that concern one run, about itself, its source or its author, oldest first, undone ones too."""
    events = facts.moderation()
    return events.of((verdict.run,), verdict.submission.sha256, verdict.submission.author)


def pooled(facts: Facts, verdict: Verdict) -> PooledSource | None:
    """The pooled gradings of a verdict's source in its table; None if this verdict is not among them."""
    events, sha256 = facts.moderation(), verdict.submission.sha256
    same = (fields for fields in facts.verdicts if fields.sha256 == sha256 and fields.accepted)
    counted = [fields for fields in same if events.state(fields.run, sha256, fields.author) == "ranks"]
    return next((source for source in pooling.pooled(counted) if verdict.run in source.gradings), None)
