"""One ledger prepared for the pages: its boards with their records, the runs that have a page, and authors' results.

`build` reads a book from each ledger. A book is made from the index alone; whole verdicts, and data that only one page
shows, are read when that page is rendered. Only `leaderboard.standings.ranking` assigns ranks. Trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from heapq import nlargest
from itertools import chain, islice
from typing import NamedTuple

from harness.errors import LedgerError
from harness.files.identity import with_private_cases
from harness.verdict import Outcome, Verdict
from leaderboard.publishing.site.document import Board, Step
from leaderboard.publishing.site.folder import as_text
from leaderboard.record.current import Current
from leaderboard.record.fields import TableKey, VerdictFields
from leaderboard.record.lines import Lines
from leaderboard.record.pooling import PooledSource
from leaderboard.record.teams import Teams
from leaderboard.standings.ranking import CARD, Ranking, Row, Table, rankings
from leaderboard.text.units import utc

_FAILURES = 5  # newest failures shown per author and problem
_ACCEPTED = 5  # newest accepted runs of an author that have a page
_ACCEPTED_OF_ALL = 50  # newest accepted runs of a problem that have a page; each costs time in every build
_READ = 8  # whole verdicts in memory, for neighbouring pages; more of them would slow the garbage collector

Bests = Mapping[str, Sequence[tuple[datetime, int]]]


@dataclass
class Tried:
    """The results of some authors on one problem: one author, or the members of a team."""

    authors: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    moments: list[datetime] = field(default_factory=list)
    mark: str = ""
    """It changes with every verdict of theirs, and with any change to the lines before the last of these."""

    @property
    def latest(self) -> datetime:
        return max(self.moments)

    def with_(self, other: Tried) -> Tried:
        """Together with the results of other authors of the same team."""
        authors, moments = self.authors + other.authors, self.moments + other.moments
        return Tried(authors, self.outcomes + other.outcomes, moments, self.mark + other.mark)


class Placed(NamedTuple):
    """A row on its board, which has `of` ranked rows, with the line of its newest grading.

    `mark` changes with everything but the rank and the stale mark.
    """

    row: Row
    board: Board
    of: int
    line: VerdictFields
    mark: str


class Book:
    """The boards of one problem, newest first, and other data of its ledger.

    `placed` are the rows of all boards, by run. `runs` are the verdicts that have a page: of a run that is on a board,
    once held a record, or is among its author's newest. `bests` has each author's personal bests on a board, oldest
    first. `activity` has, by date (UTC), the number of verdicts, and how many of them were accepted.
    """

    def __init__(self, lines: Lines, sha256: str | None, current: Current, teams: Teams) -> None:
        """Read a ledger from its indexed lines, which must stay open until the last page is made.

        `sha256` is the problem's current hash, or None if the problem no longer exists; `current` marks stale rows.

        Raises:
            LedgerError: a verdict is of a version that cannot be read.
        """
        self.problem, self._lines = lines.path.stem, lines
        ranked = rankings(lines, current, teams)
        newest = _current([ranking.table for ranking in ranked], sha256)
        self.bests: dict[TableKey, Bests] = {}
        self.placed: dict[str, Placed] = {}
        self.runs: dict[str, VerdictFields] = {}
        boards = []
        for ranking in ranked:
            records, self.bests[ranking.table.key] = _history(ranking, teams)
            table = {name: getattr(ranking.table, name) for name in Table.model_fields}
            boards.append(Board(**table, current=ranking.table.key in newest, records=records))
            known, ranks = {source.verdict.run: source.verdict for source in ranking.sources}, len(boards[-1].ranked)
            for row in boards[-1].rows:
                line = self.runs[row.run] = known[row.run]
                self.placed[row.run] = Placed(row, boards[-1], ranks, line, _mark(row, line.hash))
        self.boards = tuple(boards)
        aside = {row.run for board in boards for row in board.set_aside}
        with_page = {step.run for board in boards for step in board.records}
        self.authors = _tried(lines)
        most = sum(min(_ACCEPTED, tried.outcomes[Outcome.ACCEPTED]) for tried in self.authors.values())
        with_page |= _newest_accepted((found for found in lines.accepted() if found[0] not in aside), most)
        self.runs.update((line.run, line) for line in lines.of_runs(with_page - self.runs.keys()))
        self.activity = lines.days()
        lines.release()
        self.verdict = lru_cache(_READ)(partial(_verdict, lines))

    @property
    def current(self) -> tuple[Board, ...]:
        """The current boards."""
        return tuple(board for board in self.boards if board.current)

    def of(self, rows: Iterable[Row]) -> list[Verdict]:
        """The whole verdicts of rows."""
        return [self.verdict(self.runs[row.run]) for row in rows]

    def failed(self, tried: Tried) -> list[VerdictFields]:
        """The newest failures among some results, newest first."""
        found = (line for author in tried.authors for line in self._lines.failed(author, _FAILURES))
        return nlargest(_FAILURES, found, key=lambda line: line.age)


def _verdict(lines: Lines, line: VerdictFields) -> Verdict:
    """The whole verdict of a line.

    Raises:
        LedgerError: the ledger was changed meanwhile, or cannot be read.
    """
    (entry,) = lines.read([line])
    if entry.hash != line.hash:
        raise LedgerError(f"{lines.path} was written to in the middle while it was read", "try again")
    return entry.verdict


def _tried(lines: Lines) -> dict[str, Tried]:
    authors: dict[str, Tried] = {}
    for author, outcome, verdicts, last, latest in lines.tallies():
        if (tried := authors.get(author)) is None:
            tried = authors[author] = Tried([author])
        tried.outcomes[outcome] = verdicts
        tried.moments.append(datetime.fromisoformat(latest))
        tried.mark = last  # that of their last verdict comes last
    return authors


def _mark(row: Row, line: str) -> str:
    score = row.score
    mark = f"{line} {row.gradings} {score.median_ns} {score.low_ns} {score.high_ns} {score.confidence}"
    return mark if row.team is None and not row.moderation else as_text([mark, row.team, row.moderation])


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
    """The problem's current hash with a table's private cases, which the machine that builds may not have."""
    if sha256 is None or table.private is None or table.key.problem_sha256 == sha256:
        return sha256
    return with_private_cases(sha256, table.private.sha256)


def _history(ranking: Ranking, teams: Teams) -> tuple[tuple[Step, ...], Bests]:
    """The records of a table, and the personal bests.

    A source counts from its first grading there, with its present pooled score. Identical sources count once, for the
    author who submitted them first. A source that does not rank does not count.
    """
    records: list[Step] = []
    bests: dict[str, list[tuple[datetime, int]]] = {}
    submitted_by: dict[str, str] = {}
    record: PooledSource | None = None
    for source in sorted(ranking.sources, key=lambda source: source.first):
        author, score, first = source.verdict.author, source.score, source.first
        new = submitted_by.setdefault(source.verdict.sha256, author) == author
        if source.state != "ranks":
            continue
        at = utc(first.created_at)
        allowed = CARD if record is not None and record.card != source.card else 1.0  # as for ranks
        if new and (record is None or allowed * score.high_ns < record.score.low_ns):
            record = source
            step = Step(run=first.run, author=author, team=teams.of(author), at=at, score_ns=score.median_ns)
            records.append(step)
        own = bests.setdefault(author, [])
        if not own or score.median_ns < own[-1][1]:
            own.append((at, score.median_ns))
    return tuple(records), bests


def _newest_accepted(newest_first: Iterable[tuple[str, str]], most: int) -> set[str]:
    """The newest accepted runs of each author, at most `most` in all, from all of them with their authors.

    If there are too many, all authors lose their oldest ones first.
    """
    found = [list[str]() for _ in range(_ACCEPTED)]  # by their place among the author's runs
    places = Counter[str]()
    for run, author in newest_first:
        if (place := places[author]) < _ACCEPTED:
            places[author] += 1
            found[place].append(run)
        if len(found[0]) == _ACCEPTED_OF_ALL or sum(map(len, found)) == most:
            break  # older runs have no room
    return {*islice(chain.from_iterable(found), _ACCEPTED_OF_ALL)}
