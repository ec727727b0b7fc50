"""From ledger entries to standings: one pure function, for the command line, the Markdown and the site alike.

Trusted. It reads of a verdict only what it ranks by, so that a hundred thousand lines take seconds.

**One table, one question.** Times are compared only where they answer the same question: the same problem to the byte,
the same protocol, in sealed rounds or by replays, the same device, in isolation or not, compiled or interpreted.
`TableKey` is that question.

**Who ranks at all.** An author's best source, by the time that its gradings come to together (`pooling`), never by the
best of them. Gradings that an organizer set aside do not count: they stand beside the rows, without a rank. A source
whose time is known too badly (`pooling.too_wide`) does not rank either. It stands below the rows that do, unless its
author has one that ranks and is no slower.

**Who shares a rank.** Rows that rank stand in the order of their medians. Walking down, a row shares the rank of its
group's *leader*, the group's first row, if its interval overlaps the leader's; otherwise it leads a new group, whose
rank is one more than the number of rows above it. Overlap itself is not transitive: a chain of neighbours, each
overlapping the next, could give a row the rank of one that is certainly faster. Measured against the leader alone, a
printed rank keeps one meaning that holds for each of its rows: "not shown to be slower than the first of them".
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from harness.errors import LedgerError
from harness.verdict import (
    DeviceKind,
    Effort,
    Interval,
    Outcome,
    PrivateId,
    Ratio,
    Record,
    SandboxName,
    Speedup,
    Timing,
    Verdict,
)
from leaderboard.record.current import Current
from leaderboard.record.entry import MODERATION, VERDICT, Entry
from leaderboard.record.moderation import Events, Moderation, State, state
from leaderboard.standings.excerpt import Question, Ranked, RowDetails, parse_ranking_fields, parse_row_details
from leaderboard.standings.pooling import Source, identity, too_wide
from leaderboard.standings.staleness import Present, Stale

_REPLAYS_SINCE = 4  # the first protocol that has them


def how_timed(timing: Timing, device_kind: DeviceKind, protocol: int) -> str:
    """What a table of these times is called beside others of its device; empty where there are none but sealed ones."""
    if timing == "replayed":
        return "replayed"
    return "sealed rounds" if device_kind == "cuda" and protocol >= _REPLAYS_SINCE else ""


class TableKey(Record):
    """What the rows of one table have in common."""

    problem: str
    problem_sha256: str
    protocol: int
    timing: Timing = "sealed"
    device_kind: DeviceKind
    device_name: str
    isolated: bool
    interpreted: bool

    @classmethod
    def of(cls, question: Question) -> TableKey:
        """The key of what `excerpt.Ranked.question` asks."""
        return cls.model_validate(dict(zip(cls.model_fields, question, strict=True)))

    @property
    def how_timed(self) -> str:
        """What tells the table from one of the other timing; empty where there is no other."""
        return how_timed(self.timing, self.device_kind, self.protocol)

    @property
    def title(self) -> str:
        """The device, and what tells its tables apart by their timing: `NVIDIA H200, replayed`."""
        return ", ".join(filter(None, (self.device_name, self.how_timed)))


class Row(Record):
    """An author's best source, or one that is known too badly to rank: then there is no `rank`.

    `score` is what its `gradings` come to together. All else is told of the newest of them, which `run` names: `seq` is
    its line in the ledger, `modes` are the timing modes that its `cases` benchmark cases were run in, and the speedups
    are its own. `moderation` is what organizers said of any of them, oldest first.
    """

    rank: int | None
    author: str
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
    created_at: datetime
    seq: int
    state: Literal["ranks", "too_wide"] = "ranks"
    moderation: tuple[Moderation, ...] = ()
    stale: Stale | None = None

    def over(self, baseline: str) -> Ratio | None:
        """The speedup over a baseline, where it was measured."""
        return next((speedup.ratio for speedup in self.speedups if speedup.baseline == baseline), None)


class SetAside(Record):
    """An accepted verdict that does not rank, and why: `moderation` ends with, or holds, the event that says so."""

    state: State
    author: str
    submission: str
    language: str
    sha256: str
    run: str
    score: Interval
    sandbox: SandboxName
    created_at: datetime
    seq: int
    moderation: tuple[Moderation, ...]


class Table(Record):
    """Standings: rows by score, ranks from 1, equal where the intervals do not tell two apart; then those without.

    `private` says that there were private cases, and how many.
    """

    key: TableKey
    rows: tuple[Row, ...]
    set_aside: tuple[SetAside, ...] = ()
    private: PrivateId | None = None

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)

    @property
    def baselines(self) -> tuple[str, ...]:
        """The names of all baselines that a row of the table was measured against."""
        return tuple(sorted({speedup.baseline for row in self.rows for speedup in row.speedups}))


class Ranking(NamedTuple):
    """A table, and every source that is known in it, whether or not it has a row."""

    table: Table
    sources: tuple[Source, ...]


@runtime_checkable
class _Ledger(Protocol):
    """Entries that can tell some of them without reading everything."""

    def events(self) -> Iterable[Entry]: ...

    def at(self, wanted: Collection[int]) -> Iterable[Entry]: ...


_Scored = tuple[Ranked, Interval, Entry]


@dataclass
class _Found:
    """What one walk over the entries comes to."""

    sources: dict[Question, dict[tuple[str, str], Source]] = field(default_factory=dict)
    aside: dict[Question, list[_Scored]] = field(default_factory=dict)
    appeared: dict[tuple[str, str], int] = field(default_factory=dict)
    events: Events = field(default_factory=Events)
    present: Present | None = None


def rank(entries: Iterable[Entry], current: Current | None = None) -> list[Table]:
    """Rank accepted verdicts: in each table every author's best source, the earlier of two equal ones.

    The order of the entries does not matter. Tables come by problem; of one problem the hash that appeared last first,
    then the newest protocol, replayed before sealed, isolated before not, compiled before interpreted, GPUs before
    CPUs. `current` marks rows that are stale; it changes no rank.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    with no_cycles():  # until the sources are forgotten: looking for cycles among all of them takes long
        return [each.table for each in rankings(entries, current)]


def rankings(entries: Iterable[Entry], current: Current | None = None) -> list[Ranking]:
    """As `rank`, with the sources that each table was made of.

    Raises:
        LedgerError: as for `rank`.
    """
    if iter(entries) is entries:  # can be walked only once, and events come behind what they speak of
        entries = tuple(entries)
    with no_cycles():
        events = _events(entries.events() if isinstance(entries, _Ledger) else entries)
        while True:
            found = _walk(entries, events, current)
            if found.events == events:
                break
            events = found.events  # an event was appended meanwhile
        questions = {**found.sources, **found.aside}
        chosen = {question: tuple(_chosen(found.sources.get(question, {}).values())) for question in questions}
        told = _told(entries, [source for sources in chosen.values() for source in sources])
        made = [
            Ranking(_table(question, found, sources, told), tuple(found.sources.get(question, {}).values()))
            for question, sources in chosen.items()
        ]
    return sorted(made, key=lambda each: _place(each.table.key, found.appeared))


@contextmanager
def no_cycles() -> Iterator[None]:
    """Around the reading of a ledger: its lines make no cycles of objects, and looking for some takes a fifth of it."""
    looked_for = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked_for:
            gc.enable()


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals have a point in common, their ends included."""
    return one.low_ns <= other.high_ns and other.low_ns <= one.high_ns


def moderation(entries: Iterable[Entry], run: str) -> tuple[Moderation, ...]:
    """What organizers said that concerns one run, of itself, its source or its author, oldest first."""
    needle, events = f'"run":"{run}"'.encode(), Events()
    about = ("", "")
    for entry in entries:
        if entry.kind == MODERATION:
            events.add(entry.seq, entry.moderation)
        elif entry.kind == VERDICT and needle in entry.document and (verdict := parse_ranking_fields(entry)).run == run:
            about = (verdict.submission.sha256, verdict.submission.author)
    return events.of((run,), *about)


def pooled(entries: Iterable[Entry], verdict: Verdict) -> Source | None:
    """What the gradings of a verdict's source come to in its table; None where it does not count."""
    needle = verdict.submission.sha256.encode()
    same = [entry for entry in entries if entry.kind == MODERATION or needle in entry.document]
    found = (
        source
        for each in rankings(same)
        for source in each.sources
        if verdict.run in {grading.run for grading in source.gradings}
    )
    return next(found, None)


def _events(entries: Iterable[Entry]) -> Events:
    found = Events()
    for entry in entries:
        if entry.kind == MODERATION:
            found.add(entry.seq, entry.moderation)
    return found


def _walk(entries: Iterable[Entry], events: Events, current: Current | None) -> _Found:
    found = _Found(present=Present(current) if current is not None else None)
    for entry in entries:
        if entry.kind == MODERATION:
            found.events.add(entry.seq, entry.moderation)
        if entry.kind != VERDICT:
            continue
        verdict = parse_ranking_fields(entry)
        if found.present is not None:
            found.present.add(verdict)
        if verdict.outcome is not Outcome.ACCEPTED or verdict.score is None:
            continue
        version = (verdict.problem.slug, verdict.problem.sha256)
        found.appeared[version] = min(entry.seq, found.appeared.get(version, entry.seq))
        question, submission = verdict.question, verdict.submission
        if events.state(verdict.run, submission.sha256, submission.author) != "ranks":
            found.aside.setdefault(question, []).append((verdict, verdict.score, entry))
            continue
        sources = found.sources.setdefault(question, {})
        file = (submission.author, submission.sha256)
        if (source := sources.get(file)) is None:
            source = sources[file] = Source(verdict)
        source.add(verdict, verdict.score, entry)
    return found


def _chosen(sources: Iterable[Source]) -> Iterator[Source]:
    """Those that get a row, in their order: every author's best that ranks, then what is too wide but faster."""
    best: dict[str, Source] = {}
    wide: dict[str, Source] = {}
    for source in sources:
        kind, author = (wide if too_wide(source.score) else best), source.verdict.submission.author
        if author not in kind or source.order < kind[author].order:
            kind[author] = source
    yield from sorted(best.values(), key=lambda source: source.order)
    faster = (source for author, source in wide.items() if author not in best or source.order < best[author].order)
    yield from sorted(faster, key=lambda source: source.order)


def _told(entries: Iterable[Entry], sources: Sequence[Source]) -> dict[str, RowDetails]:
    """What rows tell besides, by the hashes of their lines: read anew, since documents are too large to hold all of."""
    wanted = {source.hash for source in sources}
    found = entries.at({source.newest.seq for source in sources}) if isinstance(entries, _Ledger) else entries
    told = {entry.hash: parse_row_details(entry) for entry in found if entry.hash in wanted}
    if len(told) < len(wanted):
        raise LedgerError("the ledger was replaced while it was read", "try again")
    return told


def _table(question: Question, found: _Found, sources: Sequence[Source], told: Mapping[str, RowDetails]) -> Table:
    aside = sorted(found.aside.get(question, ()), key=_order)
    return Table(
        key=TableKey.of(question),
        rows=tuple(_rows(sources, found, told)),
        set_aside=tuple(_set_aside(scored, found.events) for scored in aside),
        private=(sources[0].verdict if sources else aside[0][0]).problem.private,
    )


def _set_aside(scored: _Scored, events: Events) -> SetAside:
    verdict, score, entry = scored
    said = events.of((verdict.run,), verdict.submission.sha256, verdict.submission.author)
    return SetAside(**identity(verdict), score=score, seq=entry.seq, state=state(said), moderation=said)


def _order(scored: _Scored) -> tuple[int, datetime, str]:
    verdict, score, _ = scored
    return score.median_ns, verdict.created_at, verdict.run


def _rows(sources: Iterable[Source], found: _Found, told: Mapping[str, RowDetails]) -> Iterator[Row]:
    """Give rows their ranks, by the rule at the head of this module."""
    shared, leader = 0, None
    for above, source in enumerate(sources):
        score, wide = source.score, too_wide(source.score)
        if not wide and (leader is None or not overlap(leader, score)):
            shared, leader = above + 1, score
        newest = told[source.hash]
        verdict, runs = source.verdict, [grading.run for grading in source.gradings]
        yield Row(
            **source.identity,
            rank=None if wide else shared,
            state="too_wide" if wide else "ranks",
            gradings=len(runs),
            modes=tuple(sorted({benchmark.mode for benchmark in newest.benchmarks})),
            cases=len(newest.benchmarks),
            effort=newest.effort,
            speedups=newest.speedups,
            moderation=found.events.of(runs, verdict.submission.sha256, verdict.submission.author),
            stale=found.present.mark(verdict) if found.present is not None else None,
        )


def _place(key: TableKey, appeared: dict[tuple[str, str], int]) -> tuple[str | int, ...]:
    """Where a table stands among others. A hash is as old as its first verdict, so a late re-run does not revive it."""
    newest_first = (-appeared[key.problem, key.problem_sha256], -key.protocol)
    return (
        key.problem,
        *newest_first,
        key.timing == "sealed",
        not key.isolated,
        key.interpreted,
        key.device_kind == "cpu",
        key.device_name,
    )
