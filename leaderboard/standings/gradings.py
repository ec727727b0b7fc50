"""Every grading of a ledger, accepted or not, with what is known of it now. Trusted.

The ranking knows accepted ones alone; `kernelmark regrade` asks this module for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.record.current import Current
from leaderboard.record.entry import MODERATION, VERDICT, Entry
from leaderboard.record.moderation import Events, Moderation, State, state
from leaderboard.standings.excerpt import Ranked, parse_ranking_fields
from leaderboard.standings.staleness import Present, Stale


@dataclass(frozen=True)
class Grading:
    """One recorded verdict; `moderation` has the events that concern it, oldest first."""

    verdict: Ranked
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


def gradings(entries: Iterable[Entry], current: Current) -> list[Grading]:
    """All gradings, in the order of the ledger.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    events, present, found = Events(), Present(current), list[tuple[Ranked, int]]()
    for entry in entries:
        if entry.kind == MODERATION:
            events.add(entry.seq, entry.moderation)
        elif entry.kind == VERDICT:
            verdict = parse_ranking_fields(entry)
            present.add(verdict)
            found.append((verdict, entry.seq))
    return [
        Grading(each, seq, events.of((each.run,), each.submission.sha256, each.submission.author), present.mark(each))
        for each, seq in found
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
