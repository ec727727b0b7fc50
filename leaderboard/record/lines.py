"""The queries of one ledger's index. Trusted.

`record.index` opens it, up to date with the ledger; the ledger, the ranking and the site call it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.errors import LedgerError
from harness.verdict import Effort, Interval, Outcome
from leaderboard.record import chain
from leaderboard.record.chain import LinePlace
from leaderboard.record.entry import Entry
from leaderboard.record.fields import Facts, LastSeen, Setting, VerdictFields
from leaderboard.record.moderation import Events, Scope
from leaderboard.record.pooling import FirstGrading, PooledSource
from leaderboard.record.selection import Selection

_FIELDS = ", ".join(f"line.{name}" for name in VerdictFields._fields)  # the columns have their names
_POOLED = "first_at, first_run, source.since, gradings, pooled_ns, source.low_ns, source.high_ns, source.confidence"
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_SCOPES: tuple[Scope, ...] = ("run", "source", "author")
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
ACCEPTED = f"outcome = '{Outcome.ACCEPTED}' AND line.median_ns IS NOT NULL"  # as `VerdictFields.accepted`
FAILED = f"NOT (outcome = '{Outcome.ACCEPTED}' AND median_ns IS NOT NULL)"
# The author and the hash of each source that a moderation event about these runs, sources or authors concerns.
_CONCERNED = """
  SELECT author, sha256 FROM line INDEXED BY line_run WHERE ledger = ?1 AND run IN (SELECT value FROM json_each(?2))
  UNION SELECT author, sha256 FROM source WHERE ledger = ?1
  AND (sha256 IN (SELECT value FROM json_each(?3)) OR author IN (SELECT value FROM json_each(?4)))
"""
# The accepted gradings of the sources whose authors and hashes a subquery returns.
GRADINGS = f"""SELECT {_FIELDS} FROM ({{}}) AS named CROSS JOIN line INDEXED BY line_source
ON line.ledger = ?1 AND line.author = named.author AND line.sha256 = named.sha256 AND {ACCEPTED}"""


class Tally(NamedTuple):
    """An author's verdicts with one outcome: how many, the hash of the last one's line, when the newest was made."""

    author: str
    outcome: str
    verdicts: int
    last: str
    latest: str


class Lines:
    """The indexed lines of one ledger, as they were when `Index.lines` was called."""

    def __init__(
        self,
        database: sqlite3.Connection,
        ledger: int,
        path: Path,
        file: BinaryIO | None,
        until: datetime | None = None,
    ) -> None:
        self._database, self._ledger, self.path, self._file, self.until = database, ledger, path, file, until

    def last(self) -> tuple[LinePlace, str] | None:
        """The last line and its hash; None if there is none."""
        rows = self._rows("seq, start, length, hash", "", "ORDER BY seq DESC LIMIT 1")
        return next(((LinePlace(*row[:3]), row[3]) for row in rows), None)

    def places(self, run_prefix: str) -> list[LinePlace]:
        """The places of the verdicts whose run begins with these hexadecimal digits, oldest first.

        Raises:
            LedgerError: there is none, and the ledger has a verdict whose run cannot be read.
        """
        between = (run_prefix, f"{run_prefix}g")  # "g" comes after all hexadecimal digits
        rows = self._rows("seq, start, length", "AND run >= ? AND run < ?", "", *between, by="INDEXED BY line_run")
        if not (found := sorted(LinePlace(*row) for row in rows)):
            self._refuse_unreadable()
        return found

    def at(self, numbers: Iterable[int]) -> list[LinePlace]:
        """The places of the lines with these numbers, in order."""
        wanted = json.dumps([*numbers])
        rows = self._rows("seq, start, length", "AND seq IN (SELECT value FROM json_each(?))", "ORDER BY seq", wanted)
        return [LinePlace(*row) for row in rows]

    def read(self, places: Iterable[LinePlace | VerdictFields]) -> Iterator[Entry]:
        """The entries at some places; other processes may write meanwhile.

        Raises:
            LedgerError: one of these lines was changed after it was written.
        """
        self.release()
        for place in places:
            assert self._file is not None, "a ledger without a file has no places"
            yield chain.at(self.path, self._file, place.start, place.length)

    def events(self) -> list[Entry]:
        """All entries that are not verdicts, oldest first, without their `prev`, which the index does not store."""
        where = "AND run IS NULL AND event IS NOT NULL"
        rows = self._rows("seq, hash, kind, event", where, "ORDER BY seq", by="INDEXED BY line_run")
        return [Entry(seq, "", digest, kind, document.encode()) for seq, digest, kind, document in rows]

    def facts(self) -> Facts:
        """The facts from which the standings follow.

        Raises:
            LedgerError: a verdict was written by a version whose verdicts this one cannot read.
        """
        self._refuse_unreadable()
        verdicts = map(self.made, self._rows(_FIELDS, "AND run IS NOT NULL", "ORDER BY seq"))
        return Facts(self.events(), [*verdicts])

    def moderation(self) -> Events:
        """The moderation events among the lines."""
        return Facts(self.events(), ()).moderation()

    def selections(self) -> list[Selection]:
        """The selections among the lines, oldest first."""
        return Facts(self.events(), ()).selections()

    def sources(self, events: Events) -> Iterator[PooledSource]:
        """The sources that none of these events concerns, each in every table that has it.

        Raises:
            LedgerError: a verdict was written by a version whose verdicts this one cannot read.
        """
        self._refuse_unreadable()
        query = f"""SELECT {_FIELDS}, {_POOLED} FROM source JOIN line ON line.ledger = source.ledger AND seq = newest
        WHERE source.ledger = ?1 AND (source.author, source.sha256) NOT IN ({_CONCERNED})"""
        for row in self._database.execute(query, self._concerned(events)):
            first_at, first_run, since, gradings, median_ns, low_ns, high_ns, confidence = row[-8:]
            yield PooledSource(
                self.made(row[:-8]),
                FirstGrading(datetime.fromisoformat(first_at), first_run),
                since,
                tuple(gradings.split(",")),
                Interval(median_ns=median_ns, low_ns=low_ns, high_ns=high_ns, confidence=confidence),
            )

    def concerned(self, events: Events) -> Iterator[VerdictFields]:
        """The accepted verdicts on the sources that some of these events concern, oldest first."""
        if not any(map(events.named, _SCOPES)):
            return iter(())  # as of most ledgers
        query = f"{GRADINGS.format(_CONCERNED)} ORDER BY seq"
        return map(self.made, self._database.execute(query, self._concerned(events)))

    def last_seen(self) -> list[LastSeen]:
        """Each setting, in the order of its first line."""
        query = """SELECT seen.setting, created_at FROM seen JOIN line ON line.ledger = seen.ledger AND seq = newest
        WHERE seen.ledger = ? ORDER BY since"""
        rows = self._database.execute(query, (self._ledger,))
        return [LastSeen(self._settings[number], datetime.fromisoformat(at)) for number, at in rows]

    def newest_of_files(self, settings: Iterable[Setting]) -> list[VerdictFields]:
        """The newest verdict on each author's file in each of these settings, in the order of the lines."""
        wanted = {id(setting) for setting in settings}
        if not (numbers := [number for number, setting in self._settings.items() if id(setting) in wanted]):
            return []  # all lines would be read for nothing
        query = f"""SELECT {_FIELDS} FROM (
          SELECT *, row_number() OVER (PARTITION BY author, sha256, setting ORDER BY moment DESC, seq) AS place
          FROM line WHERE ledger = ? AND setting IN (SELECT value FROM json_each(?))
        ) AS line WHERE place = 1 ORDER BY seq"""
        return [*map(self.made, self._database.execute(query, (self._ledger, json.dumps(numbers))))]

    def tallies(self) -> Iterator[Tally]:
        """How many verdicts of each author had each outcome."""
        query = """SELECT tally.author, tally.outcome, verdicts, l.hash, n.created_at FROM tally
        JOIN line AS l ON l.ledger = tally.ledger AND l.seq = last
        JOIN line AS n ON n.ledger = tally.ledger AND n.seq = newest WHERE tally.ledger = ?
        ORDER BY tally.author, last"""
        return map(Tally._make, self._database.execute(query, (self._ledger,)))

    def days(self) -> dict[str, tuple[int, int]]:
        """By date (UTC): the number of verdicts, and how many of them were accepted."""
        query = "SELECT day, verdicts, accepted FROM day WHERE ledger = ? ORDER BY day"
        return {day: (verdicts, accepted) for day, verdicts, accepted in self._database.execute(query, (self._ledger,))}

    def accepted(self) -> Iterator[tuple[str, str]]:
        """The runs of the accepted verdicts and their authors, newest first."""
        order = "ORDER BY moment DESC, run DESC"
        return iter(self._rows("run, author", f"AND {ACCEPTED}", order, by="INDEXED BY line_moment"))

    def failed(self, author: str, most: int) -> list[VerdictFields]:
        """The newest verdicts of an author that were not accepted, newest first, and no more than `most`."""
        where, order = f"AND author = ? AND {FAILED}", "ORDER BY moment DESC, run DESC LIMIT ?"
        return [*map(self.made, self._rows(_FIELDS, where, order, author, most, by="INDEXED BY line_failed"))]

    def of_runs(self, runs: Iterable[str]) -> list[VerdictFields]:
        """The verdicts of these runs, by their whole ids, oldest first."""
        where, wanted = "AND run IN (SELECT value FROM json_each(?))", json.dumps([*runs])
        return [*map(self.made, self._rows(_FIELDS, where, "ORDER BY seq", wanted, by="INDEXED BY line_run"))]

    def release(self) -> None:
        """Let other processes write. Later reads may see newer lines than earlier ones did."""
        self._database.rollback()

    def newest(self, most: int, *, outcome: Outcome, language: str, effort: Effort) -> list[VerdictFields]:
        """The newest verdicts of this kind, newest first, and no more than `most`."""
        where, kind = "AND outcome = ? AND language = ? AND effort = ?", (outcome.value, language, effort)
        return [*map(self.made, self._rows(_FIELDS, where, "ORDER BY seq DESC LIMIT ?", *kind, most))]

    def made(self, row: Sequence[Any]) -> VerdictFields:
        """The fields of a verdict from a row of their columns."""
        *same, outcome, created_at, setting, start, length = row
        moment = datetime.fromisoformat(created_at)
        return VerdictFields._make((*same, _OUTCOMES[outcome], moment, self._settings[setting], start, length))

    def _concerned(self, events: Events) -> tuple[object, ...]:
        """The values of `_CONCERNED`."""
        return self._ledger, *map(json.dumps, map(events.named, _SCOPES))

    def _refuse_unreadable(self) -> None:
        where = "AND run IS NULL AND fault IS NOT NULL"
        for fault, remedy in self._rows("fault, remedy", where, "LIMIT 1", by="INDEXED BY line_run"):
            raise LedgerError(fault, remedy or "")

    def _rows(self, columns: str, where: str, then: str, *values: object, by: str = "") -> sqlite3.Cursor:
        query = f"SELECT {columns} FROM line {by} WHERE ledger = ? {where} {then}"
        return self._database.execute(query, (self._ledger, *values))

    @cached_property
    def _settings(self) -> dict[int, Setting]:
        """The settings in this ledger, by their numbers."""
        query = "SELECT id, json FROM seen JOIN setting ON id = setting WHERE ledger = ?"
        rows = self._database.execute(query, (self._ledger,))
        return {number: Setting.model_validate_json(document) for number, document in rows}
