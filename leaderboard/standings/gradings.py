"""Every grading of a ledger, accepted or not, with what is known of it now. Trusted.

The ranking knows accepted ones alone; `kernelmark regrade` asks this module for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.record.current import Current
from leaderboard.record.fields import Facts, VerdictFields
from leaderboard.record.moderation import Moderation, State, state
from leaderboard.standings.staleness import Present, Stale


@dataclass(frozen=True)
class Grading:
    """One recorded verdict; `moderation` has the events that concern it, oldest first."""

    verdict: VerdictFields
    seq: int
    moderation: tuple[Moderation, ...]
    stale: Stale | None

    @property
    def run(self) -> str:
        return self.verdict.run

    @property
    def author(self) -> str:
        return self.verdict.submission.author

    @property
    def submission(self) -> str:
        return self.verdict.submission.name

    @property
    def sha256(self) -> str:
        return self.verdict.submission.sha256

    @property
    def state(self) -> State:
        return state(self.moderation)


def gradings(facts: Facts, current: Current) -> list[Grading]:
    """All gradings, in the order of the ledger.

    Raises:
        LedgerError: an event was written by a version that this one cannot read.
    """
    events, present = facts.moderation(), Present(current)
    for verdict in facts.verdicts:
        present.add(verdict)
    return [
        Grading(v, v.seq, events.of((v.run,), v.submission.sha256, v.submission.author), present.mark(v))
        for v in facts.verdicts
    ]


def newest(of: Iterable[Grading]) -> list[Grading]:
    """The newest grading of each author's source; none of a source of which a grading is disqualified."""
    last: dict[tuple[str, str], Grading] = {}
    out: set[tuple[str, str]] = set()
    for each in sorted(of, key=lambda each: each.verdict.created_at):
        last[each.author, each.sha256] = each
        if each.state == "disqualified":
            out.add((each.author, each.sha256))
    return [each for file, each in last.items() if file not in out]
