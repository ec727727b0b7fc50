"""From ledger entries to standings: one pure function, for the command line, the Markdown and the site alike.

Trusted. It reads of a verdict only what it ranks by, so that a hundred thousand lines take seconds.

**One table, one question.** Times are compared only where they answer the same question: the same problem to the byte,
the same protocol, the same device, in isolation or not, compiled or interpreted. `TableKey` is that question.

**Who shares a rank.** Rows stand in the order of their medians. Walking down, a row shares the rank of its group's
*leader*, the group's first row, if its interval overlaps the leader's; otherwise it leads a new group, whose rank is
one more than the number of rows above it. Overlap itself is not transitive: a chain of neighbours, each overlapping the
next, could give a row the rank of one that is certainly faster. Measured against the leader alone, a printed rank keeps
one meaning that holds for each of its rows: "not shown to be slower than the first of them".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from harness.verdict import (
    DeviceKind,
    Effort,
    Environment,
    Interval,
    Outcome,
    ProblemId,
    Ratio,
    Record,
    SandboxName,
    Speedup,
    SubmissionId,
)
from leaderboard.entry import VERDICT, Entry, unreadable


class TableKey(Record):
    """What the rows of one table have in common."""

    problem: str
    problem_sha256: str
    protocol: int
    device_kind: DeviceKind
    device_name: str
    isolated: bool
    interpreted: bool


class Row(Record):
    """An author's best accepted verdict; `modes` are the timing modes that its `cases` benchmark cases were run in."""

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

    def over(self, baseline: str) -> Ratio | None:
        """The speedup over a baseline, where it was measured."""
        return next((speedup.ratio for speedup in self.speedups if speedup.baseline == baseline), None)


class Table(Record):
    """Standings: rows by score, ranks from 1, equal where the intervals do not tell two apart."""

    key: TableKey
    rows: tuple[Row, ...]

    @property
    def baselines(self) -> tuple[str, ...]:
        """The names of all baselines that a row of the table was measured against."""
        return tuple(sorted({speedup.baseline for row in self.rows for speedup in row.speedups}))


class _Ranked(BaseModel):
    """The keys of a verdict that decide where it stands; the rest is skipped without making objects of it."""

    schema_version: Literal[1]
    outcome: Outcome
    problem: ProblemId
    submission: SubmissionId
    environment: Environment
    protocol: int
    run: str
    created_at: AwareDatetime
    score: Interval | None = None


class _Benchmark(BaseModel):
    mode: str


class _Told(BaseModel):
    """What a row tells besides, read from the whole document, and only of the verdicts that get a row."""

    benchmarks: tuple[_Benchmark, ...]
    effort: Effort = "default"
    speedups: tuple[Speedup, ...] = ()


_RANKED = TypeAdapter(_Ranked)
_TOLD = TypeAdapter(_Told)
_BULK = ((b',"benchmarks":[', b'],"score":{'), (b',"seeds":[', b',"schema_version":'))  # the larger first
_Scored = tuple[_Ranked, Interval, Entry]
_Question = tuple[tuple[str, str], int, tuple[DeviceKind, str], bool, bool]


def rank(entries: Iterable[Entry]) -> list[Table]:
    """Rank accepted verdicts: in each table every author's best, the earlier of two equal ones.

    The order of the entries does not matter. Tables come by problem; of one problem the hash that appeared last first,
    then the newest protocol, isolated before not, compiled before interpreted, GPUs before CPUs.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    best: dict[_Question, dict[str, _Scored]] = {}
    appeared: dict[tuple[str, str], int] = {}
    for verdict, score, entry in _accepted(entries):
        version = (verdict.problem.slug, verdict.problem.sha256)
        appeared[version] = min(entry.seq, appeared.get(version, entry.seq))
        ran = verdict.environment
        device = (ran.device_kind, ran.device_name)
        authors = best.setdefault((version, verdict.protocol, device, ran.isolated, ran.interpreted), {})
        known = authors.get(verdict.submission.author)
        if known is None or _order((verdict, score, entry)) < _order(known):
            authors[verdict.submission.author] = (verdict, score, entry)
    tables = [_table(question, authors) for question, authors in best.items()]
    return sorted(tables, key=lambda table: _place(table.key, appeared))


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals have a point in common, their ends included."""
    return one.low_ns <= other.high_ns and other.low_ns <= one.high_ns


def _accepted(entries: Iterable[Entry]) -> Iterator[_Scored]:
    for entry in entries:
        if entry.kind != VERDICT:
            continue
        verdict = _read(entry)
        if verdict.outcome is Outcome.ACCEPTED and verdict.score is not None:
            yield verdict, verdict.score, entry


def _read(entry: Entry) -> _Ranked:
    """Parse what decides a place: first without the bulk, and whole when something turns out to be missing."""
    try:
        verdict = _RANKED.validate_json(_without_bulk(entry.document))
        if verdict.outcome is not Outcome.ACCEPTED or verdict.score is not None:
            return verdict
    except ValidationError:
        pass
    try:
        return _RANKED.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error


def _tell(entry: Entry) -> _Told:
    try:
        return _TOLD.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error


def _without_bulk(document: bytes) -> bytes:
    """The document less its tests, log and benchmarks: most of its bytes, none of which decides a place.

    Inside a JSON string a quote has a backslash before it, so these bytes stand only where the keys do. In a document
    with its keys in another order too much is cut: then a needed key is missing, or it is no JSON any more.
    """
    for first, last in _BULK:
        start, end = document.find(first), document.rfind(last)
        if 0 < start < end:
            document = document[:start] + document[end + last.index(b",") :]
    return document


def _table(question: _Question, authors: dict[str, _Scored]) -> Table:
    (slug, sha256), protocol, (device_kind, device_name), isolated, interpreted = question
    key = TableKey(
        problem=slug,
        problem_sha256=sha256,
        protocol=protocol,
        device_kind=device_kind,
        device_name=device_name,
        isolated=isolated,
        interpreted=interpreted,
    )
    return Table(key=key, rows=tuple(_rows(sorted(authors.values(), key=_order))))


def _order(scored: _Scored) -> tuple[int, datetime, str]:
    """Faster first, then earlier; the run only so that the order never depends on that of the entries."""
    verdict, score, _ = scored
    return score.median_ns, verdict.created_at, verdict.run


def _rows(ordered: Iterable[_Scored]) -> Iterator[Row]:
    """Give rows their ranks, by the rule at the head of this module."""
    shared, leader = 0, None
    for above, (verdict, score, entry) in enumerate(ordered):
        if leader is None or not overlap(leader, score):
            shared, leader = above + 1, score
        submission = verdict.submission
        told = _tell(entry)
        yield Row(
            rank=shared,
            author=submission.author,
            submission=submission.name,
            language=submission.language,
            sha256=submission.sha256,
            run=verdict.run,
            score=score,
            sandbox=verdict.environment.sandbox,
            modes=tuple(sorted({benchmark.mode for benchmark in told.benchmarks})),
            cases=len(told.benchmarks),
            effort=told.effort,
            speedups=told.speedups,
            created_at=verdict.created_at,
        )


def _place(key: TableKey, appeared: dict[tuple[str, str], int]) -> tuple[str | int, ...]:
    """Where a table stands among others. A hash is as old as its first verdict, so a late re-run does not revive it."""
    newest_first = (-appeared[key.problem, key.problem_sha256], -key.protocol)
    return (key.problem, *newest_first, not key.isolated, key.interpreted, key.device_kind == "cpu", key.device_name)
