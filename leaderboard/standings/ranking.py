"""Ranks ledger entries: one pure function for the command line, the Markdown and the site.

Trusted. It needs a row of each source, which the index keeps, and single gradings only of the few sources that
organizers said something about.

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

**Two cards of one name** can differ by up to `CARD`, so times of different cards overlap unless they are further apart.
A group then has a leader for each card, its first row there, and a row must overlap all of them: two kernels that are
shown to differ on one card keep different ranks, whichever other cards are in the table (`docs/decisions/0013`).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from harness.verdict import Effort, FrozenModel, Interval, PrivateId, ProblemId, Ratio, SandboxName, Speedup
from leaderboard.record import moderation
from leaderboard.record.current import Current
from leaderboard.record.fields import TableKey, VerdictFields
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.lines import Lines
from leaderboard.record.moderation import Events, Moderation
from leaderboard.record.pooling import COMPARABLE, NO_RANK, PooledSource, RowState, pooled
from leaderboard.record.selection import selected
from leaderboard.record.teams import NO_TEAMS, Team, Teams, shown
from leaderboard.standings.staleness import Present, Stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a board: an author's or a team's best source, or a run without a rank, for the reason in its `state`.

    `author` wrote it; `team` is the one that the author is in, which has no other ranked row.
    `score` is pooled over its `gradings`. Everything else is of the newest of them, which `run` names: `seq` is its
    line in the ledger, `modes` are the timing modes of its `cases` benchmark cases, `share` is its share of the
    roofline (the geometric mean over the cases), `peak_bytes` the most device memory that a call of any case allocated,
    and the speedups are its own. All of them ran on the same `card`, the hash of its UUID, if the device has one.
    `moderation` has the events that concern any of the gradings and were not undone, oldest first.
    """

    __pydantic_config__ = FrozenModel.model_config
    rank: int | None
    author: str
    team: Team | None = None
    submission: str
    language: str
    sha256: str
    run: str
    score: Interval
    gradings: int = 1
    card: str | None = None
    sandbox: SandboxName
    modes: tuple[str, ...]
    cases: int
    effort: Effort
    speedups: tuple[Speedup, ...] = ()
    share: float | None = None
    peak_bytes: int | None = None
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


class Table(FrozenModel):
    """Standings: rows by score with ranks from 1, shared if intervals overlap the leader's; then rows without a rank.

    `set_aside` are runs that organizers disqualified, or that were late. `private` identifies and counts the private
    cases, if there were any. No verdict made after `frozen` is in it.
    """

    key: TableKey
    rows: tuple[Row, ...]
    set_aside: tuple[Row, ...] = ()
    private: PrivateId | None = None
    frozen: datetime | None = None

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)

    @property
    def comparable(self) -> tuple[Row, ...]:
        """The rows that were timed as the table requires: those that have a rank, and those too wide for one."""
        return tuple(row for row in self.rows if row.comparable)

    @property
    def cards(self) -> int:
        """How many devices of this name its comparable rows were timed on."""
        return len({row.card for row in self.comparable})

    @property
    def baseline_names(self) -> tuple[str, ...]:
        """The names of all baselines over which the table's rows have speedups: none in Triton's interpreter, whose
        times cannot be compared with a compiled baseline's.
        """
        if self.key.interpreted:
            return ()
        return tuple(sorted({speedup.baseline for row in self.rows for speedup in row.speedups}))


class Ranking(NamedTuple):
    """A table and all its sources, whether or not they have a row."""

    table: Table
    sources: tuple[PooledSource, ...]


CARD = 1.04
"""By how much, as a ratio, times of one kernel on two devices of one name may differ without counting as different."""
ACROSS_CARDS = f"{100 * (CARD - 1):.0f} %"
RankingSource = JsonlLedger | Lines


@dataclass
class _Collected:
    """The contents of one table: the sources that may get a row, and verdicts that organizers set aside.

    It keeps one source of each state and name, and all of them only if asked to: a ledger may have a hundred thousand.
    """

    selected: Mapping[str, frozenset[str]]
    """The hashes of the sources that count, of the authors and teams who selected some; empty while it is open."""
    first: dict[RowState, dict[str, PooledSource]] = field(default_factory=lambda: defaultdict(dict))
    """The best source of each state, by the name that it ranks under."""
    every: list[PooledSource] = field(default_factory=list)
    aside: list[VerdictFields] = field(default_factory=list)
    since: int = sys.maxsize
    """The first line that has something in it."""

    def add(self, source: PooledSource, who: str, *, keep: bool) -> None:
        """Add a source that ranks under a name."""
        self.since = min(self.since, source.since)
        if keep:
            self.every.append(source)
        if source.verdict.sha256 in self.selected.get(who, (source.verdict.sha256,)):
            best = self.first[source.state]
            if who not in best or source.order < best[who].order:
                best[who] = source

    def set_aside(self, verdict: VerdictFields) -> None:
        self.since = min(self.since, verdict.seq)
        self.aside.append(verdict)

    def chosen(self) -> Iterator[PooledSource]:
        """The sources that get a row, in order: the best ranked one of each author or team, then those too wide to rank
        but faster, then of those who have no other one that is not replayed, or has known inputs.
        """
        best, wide, plain, known = (
            self.first.get(state, {}) for state in ("ranks", "too_wide", "not_replayed", "known_inputs")
        )
        faster = (source for who, source in wide.items() if who not in best or source.order < best[who].order)
        others = (source for who, source in (known | plain).items() if who not in best and who not in wide)
        for group in (best.values(), faster, others):
            yield from sorted(group, key=lambda source: source.order)


def rank(recorded: RankingSource, current: Current | None = None, teams: Teams = NO_TEAMS) -> list[Table]:
    """Rank accepted verdicts: each table has every author's best source, the earlier of two equal ones.

    The order of the verdicts does not matter. Tables are sorted by problem, then newest hash first (by its first
    verdict), then newest protocol, replayed before others, isolated before not, compiled before interpreted,
    GPUs before CPUs. `current` marks rows that are stale; it changes no rank. An author's source can only rank
    for the author's team, if `teams` has one. Once the problem is closed, authors who selected sources rank with these.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    return [ranking.table for ranking in _ranked(recorded, current, teams, keep=False)]


def rankings(recorded: RankingSource, current: Current | None = None, teams: Teams = NO_TEAMS) -> list[Ranking]:
    """Rank as `rank` does; returns each table with the sources that it was made from.

    Raises:
        LedgerError: as for `rank`.
    """
    return _ranked(recorded, current, teams, keep=True)


def overlap(one: Interval, other: Interval, *, same_card: bool = True) -> bool:
    """Whether two closed intervals intersect. If they are from two cards, one of them may be scaled by up to `CARD`."""
    allowed = 1.0 if same_card else CARD
    return one.low_ns <= allowed * other.high_ns and other.low_ns <= allowed * one.high_ns


def _ranked(recorded: RankingSource, current: Current | None, teams: Teams, *, keep: bool) -> list[Ranking]:
    with recorded.lines() if isinstance(recorded, JsonlLedger) else nullcontext(recorded) as lines:
        return _rankings(lines, current, teams, keep)


def _rankings(lines: Lines, current: Current | None, teams: Teams, keep: bool) -> list[Ranking]:
    rows = _Rows(lines.moderation(), Present(current, lines) if current is not None else None, teams, lines.until)
    tables = _collected(lines, rows.events, current, teams, keep)
    appeared: dict[tuple[str, str], int] = {}
    for key, table in tables.items():
        version = key.problem, key.problem_sha256
        appeared[version] = min(table.since, appeared.get(version, table.since))
    made = []
    for key, table in sorted(tables.items(), key=lambda item: item[1].since):
        chosen = [*table.chosen()]
        if chosen or table.aside:  # otherwise its authors selected sources of other tables
            made.append(Ranking(rows.table(key, chosen, table.aside), tuple(table.every)))
    return sorted(made, key=lambda ranking: _place(ranking.table.key, appeared))


def _collected(
    lines: Lines, events: Events, current: Current | None, teams: Teams, keep: bool
) -> dict[TableKey, _Collected]:
    tables: dict[TableKey, _Collected] = {}
    by_setting: dict[int, _Collected] = {}  # there are few settings, and their keys take long to hash

    def of(verdict: VerdictFields) -> _Collected:
        if (found := by_setting.get(id(verdict.setting))) is None:
            if (found := tables.get(verdict.setting.key)) is None:
                found = tables[verdict.setting.key] = _Collected(_selected(verdict.problem, lines, current, teams))
            by_setting[id(verdict.setting)] = found
        return found

    counted = []
    for verdict in lines.concerned(events):
        if events.state(verdict.run, verdict.sha256, verdict.author) == "ranks":
            counted.append(verdict)
        else:
            of(verdict).set_aside(verdict)
    for source in chain(lines.sources(events), pooled(counted)):
        of(source.verdict).add(source, teams.name_of(source.verdict.author), keep=keep)
    return tables


def _selected(problem: ProblemId, lines: Lines, current: Current | None, teams: Teams) -> Mapping[str, frozenset[str]]:
    """The sources that count: once the problem is closed, an author who selected sources can rank with these only."""
    if current is None or (closed := current.closed.get(problem.slug)) is None:
        return {}
    return selected(lines.selections(), closed, teams) if problem.sha256 == current.sha256(problem) else {}


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of tables."""

    events: Events
    present: Present | None
    teams: Teams
    frozen: datetime | None

    def table(self, key: TableKey, sources: Sequence[PooledSource], aside: Iterable[VerdictFields]) -> Table:
        aside = sorted(aside, key=lambda verdict: (verdict.median_ns, *verdict.age))
        return Table(
            key=key,
            rows=tuple(self._ranked(sources)),
            set_aside=tuple(self._row(verdict, verdict.score, (verdict.run,), None, None) for verdict in aside),
            private=(sources[0].verdict if sources else aside[0]).problem.private,
            frozen=self.frozen,
        )

    def _ranked(self, sources: Iterable[PooledSource]) -> Iterator[Row]:
        """Rows with ranks, by the rule in the module's docstring."""
        shared, leaders = 0, dict[str | None, Interval]()  # by card
        for above, source in enumerate(sources):
            score, state, card = source.score, source.state, source.card
            if state == "ranks":
                if not all(overlap(leader, score, same_card=on == card) for on, leader in leaders.items()):
                    leaders.clear()
                if not leaders:
                    shared = above + 1
                leaders.setdefault(card, score)
            rank = shared if state == "ranks" else None
            yield self._row(source.verdict, score, source.gradings, rank, state)

    def _row(
        self, verdict: VerdictFields, score: Interval, gradings: Sequence[str], rank: int | None, state: RowState | None
    ) -> Row:
        """A row over these runs; one without a `state` has that which its events result in."""
        said = moderation.standing(self.events.of(gradings, verdict.sha256, verdict.author))
        return Row(
            rank=rank,
            author=verdict.author,
            team=self.teams.of(verdict.author),
            submission=verdict.name,
            language=verdict.language,
            sha256=verdict.sha256,
            run=verdict.run,
            score=score,
            gradings=len(gradings),
            card=verdict.environment.device_uuid_sha256,
            sandbox=verdict.environment.sandbox,
            modes=tuple(filter(None, verdict.modes.split(","))),
            cases=verdict.cases,
            effort=verdict.effort,
            speedups=verdict.speedups,
            share=verdict.share,
            peak_bytes=verdict.peak_bytes,
            created_at=verdict.created_at,
            seq=verdict.seq,
            state=state or moderation.state(said),
            moderation=said,
            stale=self.present.mark(verdict) if self.present is not None else None,
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
