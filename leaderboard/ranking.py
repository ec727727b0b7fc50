"""From ledger entries to standings: one pure function, for the command line, the Markdown and the site alike.

Trusted. It reads of a verdict only what it ranks by, so that a hundred thousand lines take seconds.

**One table, one question.** Times are compared only where they answer the same question: the same problem to the byte,
the same protocol, the same device, in isolation or not, compiled or interpreted. `TableKey` is that question.

**Who ranks at all.** An author's best accepted verdict, of those that no organizer set aside: a disqualified run and
one that came late stand beside the rows, without a rank, and the author's next best takes their place.

**Who shares a rank.** Rows stand in the order of their medians. Walking down, a row shares the rank of its group's
*leader*, the group's first row, if its interval overlaps the leader's; otherwise it leads a new group, whose rank is
one more than the number of rows above it. Overlap itself is not transitive: a chain of neighbours, each overlapping the
next, could give a row the rank of one that is certainly faster. Measured against the leader alone, a printed rank keeps
one meaning that holds for each of its rows: "not shown to be slower than the first of them".
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from harness.verdict import (
    DeviceKind,
    Effort,
    Environment,
    Interval,
    Outcome,
    PrivateId,
    Ratio,
    Record,
    SandboxName,
    Speedup,
)
from leaderboard.entry import MODERATION, VERDICT, Entry
from leaderboard.excerpt import Question, Ranked, read, tell
from leaderboard.moderation import Moderation, State, state
from leaderboard.staleness import Current, Stale, place, stale


class TableKey(Record):
    """What the rows of one table have in common."""

    problem: str
    problem_sha256: str
    protocol: int
    device_kind: DeviceKind
    device_name: str
    isolated: bool
    interpreted: bool

    @classmethod
    def of(cls, question: Question) -> TableKey:
        """The key of what `excerpt.Ranked.question` asks."""
        return cls.model_validate(dict(zip(cls.model_fields, question, strict=True)))


class Row(Record):
    """An author's best accepted verdict; `modes` are the timing modes that its `cases` benchmark cases were run in.

    `seq` is the verdict's line in its ledger, and `moderation` what organizers said of it, oldest first.
    """

    rank: int
    author: str
    submission: str
    language: str
    sha256: str
    run: str
    score: Interval
    sandbox: SandboxName
    modes: tuple[str, ...]
    cases: int
    effort: Effort
    speedups: tuple[Speedup, ...] = ()
    created_at: datetime
    seq: int
    state: Literal["ranks"] = "ranks"
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
    """Standings: rows by score, ranks from 1, equal where the intervals do not tell two apart.

    `private` says that there were private cases, and how many.
    """

    key: TableKey
    rows: tuple[Row, ...]
    set_aside: tuple[SetAside, ...] = ()
    private: PrivateId | None = None

    @property
    def baselines(self) -> tuple[str, ...]:
        """The names of all baselines that a row of the table was measured against."""
        return tuple(sorted({speedup.baseline for row in self.rows for speedup in row.speedups}))


_Scored = tuple[Ranked, Interval, Entry]


@runtime_checkable
class _Eventful(Protocol):
    """Entries that can tell their events of moderation without reading everything."""

    def events(self) -> Iterable[Entry]: ...


_Events = dict[str, list[tuple[int, Moderation]]]


@dataclass
class _Found:
    """What one walk over the entries comes to."""

    best: dict[Question, dict[str, _Scored]] = field(default_factory=dict)
    aside: dict[Question, list[_Scored]] = field(default_factory=dict)
    appeared: dict[tuple[str, str], int] = field(default_factory=dict)
    events: _Events = field(default_factory=dict)
    newest: dict[tuple[str, ...], tuple[datetime, Environment]] = field(default_factory=dict)
    again: dict[tuple[str, ...], tuple[datetime, str, Environment]] = field(default_factory=dict)

    def moderation(self, run: str) -> tuple[Moderation, ...]:
        """The events of a run, oldest first."""
        return _in_order(self.events.get(run, ()))


def rank(entries: Iterable[Entry], current: Current | None = None) -> list[Table]:
    """Rank accepted verdicts: in each table every author's best, the earlier of two equal ones.

    The order of the entries does not matter. Tables come by problem; of one problem the hash that appeared last first,
    then the newest protocol, isolated before not, compiled before interpreted, GPUs before CPUs. `current` marks rows
    that are stale; it changes no rank.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    if iter(entries) is entries:  # can be walked only once, and events come behind what they speak of
        entries = tuple(entries)
    with no_cycles():
        early = entries.events() if isinstance(entries, _Eventful) else entries
        unranked = _unranked(_events(early))
        while True:
            found = _walk(entries, unranked, current)
            if _unranked(found.events) == unranked:
                break
            unranked = _unranked(found.events)  # an event was appended meanwhile
    questions = {**found.best, **found.aside}
    tables = [_table(question, found, current) for question in questions]
    return sorted(tables, key=lambda table: _place(table.key, found.appeared))


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
    """What organizers said of one run, oldest first."""
    needle = f'"run":"{run}"'.encode()
    return _in_order((e.seq, e.moderation) for e in entries if e.kind == MODERATION and needle in e.document)


def _in_order(events: Iterable[tuple[int, Moderation]]) -> tuple[Moderation, ...]:
    return tuple(event for _, event in sorted(events, key=lambda found: found[0]))


def _events(entries: Iterable[Entry]) -> _Events:
    found: _Events = {}
    for entry in entries:
        if entry.kind == MODERATION:
            event = entry.moderation
            found.setdefault(event.run, []).append((entry.seq, event))
    return found


def _unranked(events: _Events) -> frozenset[str]:
    return frozenset(run for run, found in events.items() if state(_in_order(found)) != "ranks")


def newest_environment(entries: Iterable[Entry], where: tuple[str, str, str]) -> Environment | None:
    """What was found on a device and in a sandbox (`staleness.place`) when something was last graded there."""
    verdicts = (read(entry) for entry in entries if entry.kind == VERDICT)
    found = [verdict for verdict in verdicts if place(verdict.environment) == where]
    return max(found, key=lambda verdict: verdict.created_at).environment if found else None


def _walk(entries: Iterable[Entry], unranked: frozenset[str], current: Current | None) -> _Found:
    found = _Found()
    for entry in entries:
        if entry.kind == MODERATION:
            event = entry.moderation
            found.events.setdefault(event.run, []).append((entry.seq, event))
        if entry.kind != VERDICT:
            continue
        verdict = read(entry)
        if current is not None:
            _remember(found, verdict, current)
        if verdict.outcome is not Outcome.ACCEPTED or verdict.score is None:
            continue
        version = (verdict.problem.slug, verdict.problem.sha256)
        found.appeared[version] = min(entry.seq, found.appeared.get(version, entry.seq))
        question = verdict.question
        scored = (verdict, verdict.score, entry)
        if verdict.run in unranked:
            found.aside.setdefault(question, []).append(scored)
            continue
        authors = found.best.setdefault(question, {})
        known = authors.get(verdict.submission.author)
        if known is None or _order(scored) < _order(known):
            authors[verdict.submission.author] = scored
    return found


def _remember(found: _Found, verdict: Ranked, current: Current) -> None:
    """Keep what tells later whether a row is stale, and whether its file was graded again since."""
    ran, slug = verdict.environment, verdict.problem.slug
    where, at = (slug, *place(ran)), verdict.created_at
    if (newest := found.newest.get(where)) is None or newest[0] < at:
        found.newest[where] = (at, ran)
    if stale(verdict.problem, verdict.protocol, ran, current) is None:
        file = _file(verdict)
        if (again := found.again.get(file)) is None or again[0] < at:
            found.again[file] = (at, verdict.run, ran)


def _file(verdict: Ranked) -> tuple[str, ...]:
    """What a grading would be repeated for: this author's file, on this device, in isolation or not."""
    ran, submission = verdict.environment, verdict.submission
    return (verdict.problem.slug, submission.author, submission.sha256, *place(ran)[:2], str(ran.isolated))


def _now(found: _Found, slug: str, current: Current | None) -> Current | None:
    """What a grading of one problem would rest on now; of environments, what was told goes before what was found."""
    if current is None:
        return None
    newest = tuple(ran for where, (_, ran) in found.newest.items() if where[0] == slug)
    return current.model_copy(update={"environments": (*current.environments, *newest)})


def _stale(found: _Found, verdict: Ranked, current: Current | None) -> Stale | None:
    if current is None:
        return None
    reason = stale(verdict.problem, verdict.protocol, verdict.environment, current)
    if reason is None:
        return None
    again = found.again.get(_file(verdict))
    problem = verdict.problem.model_copy(update={"sha256": current.sha256(verdict.problem) or ""})
    if again is None or stale(problem, current.protocol, again[2], current) is not None:
        return Stale(reason=reason)
    return Stale(reason=reason, again=again[1])


def _table(question: Question, found: _Found, current: Current | None) -> Table:
    key = TableKey.of(question)
    ordered = sorted(found.best.get(question, {}).values(), key=_order)
    aside = sorted(found.aside.get(question, ()), key=_order)
    return Table(
        key=key,
        rows=tuple(_rows(ordered, found, _now(found, key.problem, current))),
        set_aside=tuple(_set_aside(scored, found.moderation(scored[0].run)) for scored in aside),
        private=(ordered or aside)[0][0].problem.private,
    )


def _set_aside(scored: _Scored, events: tuple[Moderation, ...]) -> SetAside:
    verdict, score, entry = scored
    return SetAside(**_identity(verdict, score, entry), state=state(events), moderation=events)


def _identity(verdict: Ranked, score: Interval, entry: Entry) -> Mapping[str, Any]:
    """What rows and runs set aside have in common."""
    submission = verdict.submission
    return {
        "author": submission.author,
        "submission": submission.name,
        "language": submission.language,
        "sha256": submission.sha256,
        "run": verdict.run,
        "score": score,
        "sandbox": verdict.environment.sandbox,
        "created_at": verdict.created_at,
        "seq": entry.seq,
    }


def _order(scored: _Scored) -> tuple[int, datetime, str]:
    """Faster first, then earlier; the run only so that the order never depends on that of the entries."""
    verdict, score, _ = scored
    return score.median_ns, verdict.created_at, verdict.run


def _rows(ordered: Iterable[_Scored], found: _Found, current: Current | None) -> Iterator[Row]:
    """Give rows their ranks, by the rule at the head of this module."""
    shared, leader = 0, None
    for above, (verdict, score, entry) in enumerate(ordered):
        if leader is None or not overlap(leader, score):
            shared, leader = above + 1, score
        told = tell(entry)
        yield Row(
            **_identity(verdict, score, entry),
            rank=shared,
            modes=tuple(sorted({benchmark.mode for benchmark in told.benchmarks})),
            cases=len(told.benchmarks),
            effort=told.effort,
            speedups=told.speedups,
            moderation=found.moderation(verdict.run),
            stale=_stale(found, verdict, current),
        )


def _place(key: TableKey, appeared: dict[tuple[str, str], int]) -> tuple[str | int, ...]:
    """Where a table stands among others. A hash is as old as its first verdict, so a late re-run does not revive it."""
    newest_first = (-appeared[key.problem, key.problem_sha256], -key.protocol)
    return (key.problem, *newest_first, not key.isolated, key.interpreted, key.device_kind == "cpu", key.device_name)
