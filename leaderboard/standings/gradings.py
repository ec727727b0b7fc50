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
        return self.verdict.author

    @property
    def submission(self) -> str:
        return self.verdict.name

    @property
    def sha256(self) -> str:
        return self.verdict.sha256

    @property
    def state(self) -> State:
        return state(self.moderation)


def gradings(facts: Facts, current: Current) -> list[Grading]:
    """All gradings, in the order of the ledger.

    Raises:
        LedgerError: an event was written by a version that this one cannot read.
    """
    events, present = facts.moderation(), Present(current, facts.verdicts)
    return [Grading(v, v.seq, events.of((v.run,), v.sha256, v.author), present.mark(v)) for v in facts.verdicts]


def newest(of: Iterable[Grading]) -> list[Grading]:
    """The newest grading of each author's source; none of a source of which a grading is disqualified."""
    last: dict[tuple[str, str], Grading] = {}
    out: set[tuple[str, str]] = set()
    for grading in sorted(of, key=lambda grading: grading.verdict.created_at):
        file = grading.author, grading.sha256
        last[file] = grading
        if grading.state == "disqualified":
            out.add(file)
    return [grading for file, grading in last.items() if file not in out]
