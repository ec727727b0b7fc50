"""Ranks ledger entries: one pure function for the command line, the Markdown and the site.

Trusted. It needs few values of each verdict (`record.fields`), which the index keeps.

**One table, one question.** Times are compared only if they answer the same question: the same problem to the byte, the
same protocol, the same device, isolated or not, compiled or interpreted. `TableKey` is that question. Its `timing` is
how a time must be taken to rank. Since protocol 5 that is one for a problem and a device; before it, replayed calls and
*sealed rounds* (timed by the runner's clock, within bounds by the judge's) had a table each.

**Who ranks.** The best source of each author, or of each team (`teams`), by the pooled time of its gradings
(`pooling`), not by the best of them. Gradings that an organizer set aside do not count: they are listed after the rows,
without a rank. A source whose time is too imprecise (`pooling.too_wide`) does not rank either. It is listed below the
rows that do, unless its author or team has a ranked source that is no slower. Times that were not taken as the table
requires come last, of authors and teams that have no other row.

**Who shares a rank.** Ranked rows are in the order of their medians. Going down, a row shares the rank of its group's
*leader*, the group's first row, if its interval overlaps the leader's; otherwise it leads a new group, whose rank is
one more than the number of rows above it. Overlap is not transitive: along a chain of neighbours, each overlapping the
next, a row could get the rank of one that is certainly faster. Compared with the leader alone, a rank means the same
for each of its rows: "not shown to be slower than the first of them".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from harness.verdict import Effort, Interval, PrivateId, Ratio, Record, SandboxName, Speedup
from leaderboard.record import moderation
from leaderboard.record.current import Current
from leaderboard.record.entry import Entry
from leaderboard.record.fields import Facts, TableKey, VerdictFields
from leaderboard.record.moderation import Events, Moderation
from leaderboard.record.teams import NO_TEAMS, Team, Teams, shown
from leaderboard.standings.pooling import COMPARABLE, NO_RANK, PooledSource, RowState
from leaderboard.standings.staleness import Present, Stale


class Row(Record):
    """One line of a board: an author's or a team's best source, or a run without a rank, for the reason in its `state`.

    `author` wrote it; `team` is the one that the author is in, which has no other ranked row.
    `score` is pooled over its `gradings`. Everything else is of the newest of them, which `run` names: `seq` is its
    line in the ledger, `modes` are the timing modes of its `cases` benchmark cases, `share` is its share of the
    roofline (the geometric mean over the cases), and the speedups are its own.
    `moderation` has the events that concern any of the gradings, oldest first.
    """

    rank: int | None
    author: str
    team: Team | None = None
    submission: str
    language: str
    sha256: str
    run: str
    score: Interval
    gradings: int = 1
    sandbox: SandboxName
    modes: tuple[str, ...]
    cases: int
    effort: Effort
    speedups: tuple[Speedup, ...] = ()
    share: float | None = None
    created_at: datetime
    seq: int
    state: RowState = "ranks"
    moderation: tuple[Moderation, ...] = ()
    stale: Stale | None = None

    @property
    def who(self) -> str:
        """Author and team, as a board names them."""
        return shown(self.author, self.team)

    @property
    def name(self) -> str:
        """The name that it ranks under: the team's, else the author's."""
        return self.team.name if self.team else self.author

    @property
    def no_rank(self) -> str:
        """Why it has no rank; empty if it has one."""
        return NO_RANK.get(self.state, "")

    @property
    def comparable(self) -> bool:
        """Whether it was timed as the table requires."""
        return self.state in COMPARABLE

    def belongs_to(self, author: str) -> bool:
        """Whether it is an author's row: their own, or that of their team."""
        return author == self.author or (self.team is not None and self.team.includes(author))

    def over(self, baseline: str) -> Ratio | None:
        """The speedup over a baseline; None if it was not measured."""
        return next((speedup.ratio for speedup in self.speedups if speedup.baseline == baseline), None)


class Table(Record):
    """Standings: rows by score with ranks from 1, shared if intervals overlap the leader's; then rows without a rank.

    `set_aside` are runs that organizers disqualified, or that were late. `private` identifies and counts the private
    cases, if there were any.
    """

    key: TableKey
    rows: tuple[Row, ...]
    set_aside: tuple[Row, ...] = ()
    private: PrivateId | None = None

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)

    @property
    def comparable(self) -> tuple[Row, ...]:
        """The rows that were timed as the table requires: those that have a rank, and those too wide for one."""
        return tuple(row for row in self.rows if row.comparable)

    @property
    def baseline_names(self) -> tuple[str, ...]:
        """The names of all baselines over which the table's rows have speedups: none in Triton's interpreter, whose
        times say nothing beside a compiled baseline.
        """
        if self.key.interpreted:
            return ()
        return tuple(sorted({speedup.baseline for row in self.rows for speedup in row.speedups}))


class Ranking(NamedTuple):
    """A table and all its sources, whether or not they have a row."""

    table: Table
    sources: tuple[PooledSource, ...]


Sources = dict[tuple[str, str, bool], PooledSource]
"""By the author, the hash of the file, and whether it was timed as the table requires."""


@dataclass
class _Collected:
    """The facts that one pass over the verdicts collects."""

    events: Events
    present: Present | None
    teams: Teams
    sources: dict[TableKey, Sources] = field(default_factory=dict)
    aside: dict[TableKey, list[VerdictFields]] = field(default_factory=dict)
    appeared: dict[tuple[str, str], int] = field(default_factory=dict)
    """By problem and hash, the line of its first accepted verdict."""


def rank(facts: Facts | Iterable[Entry], current: Current | None = None, teams: Teams = NO_TEAMS) -> list[Table]:
    """Rank accepted verdicts: each table has every author's best source, the earlier of two equal ones.

    The order of the verdicts does not matter. Tables are sorted by problem, then newest hash first (by its first
    verdict), then newest protocol, replayed before others, isolated before not, compiled before interpreted,
    GPUs before CPUs. `current` marks rows that are stale; it changes no rank. An author's source can only rank
    for the author's team, if `teams` has one.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    return [ranking.table for ranking in rankings(facts, current, teams)]


def rankings(facts: Facts | Iterable[Entry], current: Current | None = None, teams: Teams = NO_TEAMS) -> list[Ranking]:
    """Rank as `rank` does; returns each table with the sources that it was made from.

    Raises:
        LedgerError: as for `rank`.
    """
    collected = _collect(facts if isinstance(facts, Facts) else Facts.of(facts), current, teams)
    made = []
    for key in {**collected.sources, **collected.aside}:
        sources = tuple(collected.sources.get(key, {}).values())
        made.append(Ranking(_table(key, collected, tuple(_chosen(sources, teams))), sources))
    return sorted(made, key=lambda ranking: _place(ranking.table.key, collected.appeared))


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two closed intervals intersect."""
    return one.low_ns <= other.high_ns and other.low_ns <= one.high_ns


def _collect(facts: Facts, current: Current | None, teams: Teams) -> _Collected:
    present = Present(current, facts.verdicts) if current is not None else None
    collected = _Collected(facts.moderation(), present, teams)
    tables: dict[int, tuple[TableKey, Sources]] = {}  # by the setting, of which there are few
    for verdict in facts.verdicts:
        if not verdict.accepted:
            continue
        if (found := tables.get(id(verdict.setting))) is None:
            key = verdict.setting.key
            found = tables[id(verdict.setting)] = key, collected.sources.setdefault(key, {})
            version = key.problem, key.problem_sha256
            collected.appeared[version] = min(verdict.seq, collected.appeared.get(version, verdict.seq))
        key, sources = found
        if collected.events.state(verdict.run, verdict.sha256, verdict.author) != "ranks":
            collected.aside.setdefault(key, []).append(verdict)
            continue
        alike = (verdict.author, verdict.sha256, verdict.ranks)
        if (source := sources.get(alike)) is None:
            source = sources[alike] = PooledSource()
        source.add(verdict)
    return collected


def _chosen(sources: Iterable[PooledSource], teams: Teams) -> Iterator[PooledSource]:
    """The sources that get a row, in order: the best ranked one of each author or team, then those too wide to rank but
    faster, then of those who have no other one that is not replayed, or has known inputs.
    """
    first: dict[RowState, dict[str, PooledSource]] = {"ranks": {}, **{state: {} for state in NO_RANK}}
    for source in sources:
        kind, who = first[source.state], teams.name_of(source.verdict.author)
        if who not in kind or source.order < kind[who].order:
            kind[who] = source
    best, wide, plain, known = (first[state] for state in ("ranks", "too_wide", "not_replayed", "known_inputs"))
    faster = (source for who, source in wide.items() if who not in best or source.order < best[who].order)
    others = (source for who, source in (known | plain).items() if who not in best and who not in wide)
    for group in (best.values(), faster, others):
        yield from sorted(group, key=lambda source: source.order)


def _table(key: TableKey, collected: _Collected, sources: Sequence[PooledSource]) -> Table:
    aside = sorted(collected.aside.get(key, ()), key=lambda verdict: (verdict.median_ns, *verdict.age))
    return Table(
        key=key,
        rows=tuple(_rows(sources, collected)),
        set_aside=tuple(_row(verdict, verdict.score, (verdict,), None, None, collected) for verdict in aside),
        private=(sources[0].verdict if sources else aside[0]).problem.private,
    )


def _rows(sources: Iterable[PooledSource], collected: _Collected) -> Iterator[Row]:
    """Rows with ranks, by the rule in the module's docstring."""
    shared, leader = 0, None
    for above, source in enumerate(sources):
        score, state = source.score, source.state
        if state == "ranks" and (leader is None or not overlap(leader, score)):
            shared, leader = above + 1, score
        rank = shared if state == "ranks" else None
        yield _row(source.verdict, score, source.gradings, rank, state, collected)


def _row(
    verdict: VerdictFields, score: Interval, gradings: Sequence[VerdictFields], rank: int | None,
    state: RowState | None, collected: _Collected,
) -> Row:  # fmt: skip
    """A row; one without a `state` has that which its events result in."""
    said = collected.events.of([grading.run for grading in gradings], verdict.sha256, verdict.author)
    return Row(
        rank=rank,
        author=verdict.author,
        team=collected.teams.of(verdict.author),
        submission=verdict.name,
        language=verdict.language,
        sha256=verdict.sha256,
        run=verdict.run,
        score=score,
        gradings=len(gradings),
        sandbox=verdict.environment.sandbox,
        modes=tuple(filter(None, verdict.modes.split(","))),
        cases=verdict.cases,
        effort=verdict.effort,
        speedups=verdict.speedups,
        share=verdict.share,
        created_at=verdict.created_at,
        seq=verdict.seq,
        state=state or moderation.state(said),
        moderation=said,
        stale=collected.present.mark(verdict) if collected.present is not None else None,
    )


def _place(key: TableKey, appeared: dict[tuple[str, str], int]) -> tuple[str | int, ...]:
    """A table's sort key. A hash is as old as its first verdict, so a later grading does not move it to the top."""
    newest_first = (-appeared[key.problem, key.problem_sha256], -key.protocol)
    return (
        key.problem,
        *newest_first,
        key.timing != "replayed",
        not key.isolated,
        key.interpreted,
        key.device_kind == "cpu",
        key.device_name,
    )
