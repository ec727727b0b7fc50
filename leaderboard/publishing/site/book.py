"""One ledger as the pages need it: its boards with their records, the runs that have a page, and what each author did.

`build` reads a book from each ledger. Everything in it follows from what the index keeps; whole verdicts are read when
a page is rendered that shows them. Only `leaderboard.standings.ranking` assigns ranks. Trusted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache

from harness.errors import LedgerError
from harness.files.identity import with_private_cases
from harness.verdict import Interval, Verdict
from leaderboard.publishing.site.document import Board, ProblemAttempts, Step
from leaderboard.record.current import Current
from leaderboard.record.fields import TableKey, VerdictFields
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.teams import Teams
from leaderboard.standings.ranking import Ranking, Row, Table, rankings
from leaderboard.text.units import utc

_FAILURES = 5  # newest failures shown per author and problem
_ACCEPTED = 5  # newest accepted runs of an author that have a page
_ACCEPTED_OF_ALL = 50  # of all authors of a problem; each costs time in every build
_READ = 8  # whole verdicts that are kept: those of neighbouring pages; many would keep the garbage collector busy

Bests = Mapping[str, Sequence[tuple[datetime, int]]]


@dataclass
class Tried:
    """The results of an author or a team on one problem; `failed` are the newest failures, newest first."""

    outcomes: Counter[str] = field(default_factory=Counter)
    latest: datetime | None = None
    failed: list[VerdictFields] = field(default_factory=list)

    def add(self, other: Tried) -> None:
        """Count what another author of the same team did."""
        self.outcomes += other.outcomes
        self.latest = max(filter(None, (self.latest, other.latest)), default=None)
        self.failed = sorted([*self.failed, *other.failed], key=lambda line: line.age, reverse=True)[:_FAILURES]

    def attempts(self, problem: str) -> ProblemAttempts:
        """These results as data, without the reports of the failures."""
        assert self.latest is not None
        return ProblemAttempts(problem=problem, outcomes=dict(sorted(self.outcomes.items())), latest=self.latest)


class Book:
    """The boards of one problem, newest first, and what else its ledger says.

    `runs` are those that have a page: a run that is on a board, once held a record, or is among its author's newest.
    `bests` has each author's personal bests on a board, oldest first. `activity` has, by date (UTC), the number of
    verdicts, and how many of them were accepted.
    """

    def __init__(self, ledger: JsonlLedger, sha256: str | None, current: Current, teams: Teams) -> None:
        """Read a ledger; `sha256` is the problem's current hash, if it still exists, and `current` marks stale rows.

        Raises:
            LedgerError: the chain is broken, or a verdict is of a version that cannot be read.
        """
        facts = ledger.facts()
        self.problem, self._ledger = ledger.path.stem, ledger
        ranked = rankings(facts, current, teams)
        newest = _current([ranking.table for ranking in ranked], sha256)
        self.bests: dict[TableKey, Bests] = {}
        boards = []
        for ranking in ranked:
            records, self.bests[ranking.table.key] = _history(ranking, teams)
            table = {name: getattr(ranking.table, name) for name in Table.model_fields}
            boards.append(Board(**table, current=ranking.table.key in newest, records=records))
        self.boards = tuple(boards)
        aside = {row.run for board in boards for row in board.set_aside}
        with_page = {row.run for board in boards for row in board.rows}
        with_page |= {step.run for board in boards for step in board.records}
        with_page |= _newest_accepted(line for line in facts.verdicts if line.accepted and line.run not in aside)
        self.runs = {line.run: line for line in facts.verdicts if line.run in with_page}
        self.authors = defaultdict[str, Tried](Tried)
        self.activity: dict[str, tuple[int, int]] = {}
        self._count(facts.verdicts)
        shown = {line.seq for line in self.runs.values()}
        shown |= {line.seq for tried in self.authors.values() for line in tried.failed}
        self._places = {place.seq: place for place in ledger.places(shown)}
        self.verdict = lru_cache(_READ)(self._verdict)

    @property
    def current(self) -> tuple[Board, ...]:
        """The current boards."""
        return tuple(board for board in self.boards if board.current)

    def of(self, rows: Iterable[Row]) -> list[Verdict]:
        """The whole verdicts of rows."""
        return [self.verdict(self.runs[row.run]) for row in rows]

    def _verdict(self, line: VerdictFields) -> Verdict:
        """The whole verdict of a line.

        Raises:
            LedgerError: the ledger was replaced meanwhile, or cannot be read.
        """
        (entry,) = self._ledger.read_at([self._places[line.seq]])
        if entry.hash != line.hash:
            raise LedgerError(f"{self._ledger.path} was replaced while it was read", "try again")
        return entry.verdict

    def _count(self, verdicts: Iterable[VerdictFields]) -> None:
        days = defaultdict[date, list[int]](lambda: [0, 0])
        failed = defaultdict[str, list[VerdictFields]](list)
        for line in verdicts:
            tried, at, accepted = self.authors[line.author], line.created_at, line.accepted
            tried.outcomes[line.outcome] += 1
            if tried.latest is None or tried.latest < at:
                tried.latest = at
            day = days[utc(at).date()]
            day[0] += 1
            day[1] += accepted
            if not accepted:
                failed[line.author].append(line)
        for author, lines in failed.items():
            self.authors[author].failed = sorted(lines, key=lambda line: line.age, reverse=True)[:_FAILURES]
        self.activity = {day.isoformat(): (all_, good) for day, (all_, good) in sorted(days.items())}


def _current(tables: Sequence[Table], sha256: str | None) -> set[TableKey]:
    """The keys of the tables on the current version of the problem with the newest protocol; for a problem that no
    longer exists, on its newest version.
    """
    sha256 = sha256 or next((table.key.problem_sha256 for table in tables), None)
    tables = [table for table in tables if table.key.problem_sha256 == _now(table, sha256)]
    newest = next((table.key.problem_sha256 for table in tables if table.private is not None), None)
    hashes = [table.key.problem_sha256 for table in tables]  # newest first
    since = hashes.index(newest) if newest else len(hashes)
    keys = [table.key for place, table in enumerate(tables) if place < since or table.key.problem_sha256 == newest]
    return {key for key in keys if key.protocol == max(other.protocol for other in keys)}


def _now(table: Table, sha256: str | None) -> str | None:
    """The problem's current hash with the private cases of a table; the machine that builds may not have those."""
    if sha256 is None or table.private is None or table.key.problem_sha256 == sha256:
        return sha256
    return with_private_cases(sha256, table.private.sha256)


def _history(ranking: Ranking, teams: Teams) -> tuple[tuple[Step, ...], Bests]:
    """The records of a table, and the personal bests. A source counts from its first grading there, with its pooled
    score of today. Identical sources count once, for the author who submitted them first; one that does not rank does
    not count.
    """
    records: list[Step] = []
    bests: dict[str, list[tuple[datetime, int]]] = {}
    submitted_by: dict[str, str] = {}
    record: Interval | None = None
    for source in sorted(ranking.sources, key=lambda source: source.first):
        author, score, first = source.verdict.author, source.score, source.first
        new = submitted_by.setdefault(source.verdict.sha256, author) == author
        if source.state != "ranks":
            continue
        at = utc(first.created_at)
        if new and (record is None or score.high_ns < record.low_ns):
            record = score
            step = Step(run=first.run, author=author, team=teams.of(author), at=at, score_ns=score.median_ns)
            records.append(step)
        own = bests.setdefault(author, [])
        if not own or score.median_ns < own[-1][1]:
            own.append((at, score.median_ns))
    return tuple(records), bests


def _newest_accepted(lines: Iterable[VerdictFields]) -> set[str]:
    """The newest accepted runs of each author. If they are too many, all authors lose their oldest ones first."""
    places, found = Counter[str](), list[tuple[int, int, str]]()
    for number, line in enumerate(sorted(lines, key=lambda line: line.age, reverse=True)):
        places[line.author] += 1
        if places[line.author] <= _ACCEPTED:
            found.append((places[line.author], number, line.run))
    return {run for _, _, run in sorted(found)[:_ACCEPTED_OF_ALL]}
