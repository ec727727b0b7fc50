"""An index of ledgers in SQLite: the place of each line, and the values from which the standings follow. Trusted.

**The ledger stays the truth.** The index is derived from ledgers and can be deleted at any time. Before each use it is
brought up to the end of its ledger: the last line that it knows must still be there, byte for byte, and since lines are
chained by hashes that line stands for all before it. Then only what was appended is read. Otherwise (another file, a
shorter one, one that was written to in the middle) the whole ledger is read again, which checks the whole chain. One
case is left to `kernelmark verify`: a line in the middle that was changed in place, with lines appended after it.

**What a ranking reads.** When lines are inserted, the gradings of their sources are pooled anew (`record.pooling`), as
if there were no moderation. So a ranking reads one row of each source, and single gradings only of the sources that a
moderation event concerns. The schema includes the hash of the code that pools, so an index made by other code is
replaced.

**A fault costs only time.** A file that is not a database, is damaged or has another schema is replaced. If nothing can
be written, or another process keeps the database locked, an index in memory is made from the ledger. A process that is
killed leaves a ledger that is ahead of its index, as every append does.

**While a board is frozen**, verdicts made after a certain moment are left out, and everything derived follows from the
others. Such a view has its own rows in the index. It has all events, however late.

Each use opens its own connection, so that threads and forked processes share none; this takes about 0.1 ms. It reads in
one transaction, and other processes cannot write until that ends, so nothing else should be done meanwhile. SQLite's
rollback journal needs no shared memory, so the file may be on a network file system.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import BinaryIO

from harness import stats
from harness.errors import LedgerError
from harness.files.identity import length_prefixed_sha256
from leaderboard.record import chain, fields, pooling
from leaderboard.record.chain import LinePlace
from leaderboard.record.entry import EVENTS, NO_HASH, VERDICT, Entry, decode
from leaderboard.record.fields import Setting, after, fields_of
from leaderboard.record.lines import ACCEPTED, EPOCH, FAILED, GRADINGS, MICROSECOND, Lines
from leaderboard.record.pooling import PooledSource, pooled
from leaderboard.text.units import utc

_CODE = (*sorted(Path(stats.__file__).parent.glob("*.py")), Path(fields.__file__), Path(pooling.__file__))
_TABLES = f"""
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL
);
CREATE TABLE setting (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
CREATE TABLE seen (  -- settings in ledgers
  ledger INTEGER NOT NULL, setting INTEGER NOT NULL, since INTEGER NOT NULL, newest INTEGER NOT NULL,
  moment INTEGER NOT NULL, PRIMARY KEY (ledger, setting)
) WITHOUT ROWID;
CREATE TABLE tally (  -- outcomes of authors
  ledger INTEGER NOT NULL, author TEXT NOT NULL, outcome TEXT NOT NULL, verdicts INTEGER NOT NULL,
  last INTEGER NOT NULL, newest INTEGER NOT NULL, moment INTEGER NOT NULL, PRIMARY KEY (ledger, author, outcome)
) WITHOUT ROWID;
CREATE TABLE day (
  ledger INTEGER NOT NULL, day TEXT NOT NULL, verdicts INTEGER NOT NULL, accepted INTEGER NOT NULL,
  PRIMARY KEY (ledger, day)
) WITHOUT ROWID;
CREATE TABLE line (
  ledger INTEGER NOT NULL, seq INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL, hash TEXT NOT NULL,
  kind TEXT NOT NULL, event TEXT, fault TEXT, remedy TEXT,
  run TEXT, author TEXT, name TEXT, language TEXT, sha256 TEXT,
  median_ns INTEGER, low_ns INTEGER, high_ns INTEGER, confidence REAL, share REAL, peak_bytes INTEGER, doubts TEXT,
  effort TEXT, duration_ns INTEGER, modes TEXT, cases INTEGER, speedups_json TEXT, outcome TEXT, created_at TEXT,
  setting INTEGER, moment INTEGER, day TEXT,
  PRIMARY KEY (ledger, seq)
) WITHOUT ROWID;
CREATE INDEX line_run ON line (ledger, run);
CREATE INDEX line_source ON line (ledger, author, sha256);
CREATE INDEX line_moment ON line (ledger, moment, run);
CREATE INDEX line_failed ON line (ledger, author, moment, run) WHERE {FAILED};
CREATE TABLE source (  -- pooled by {length_prefixed_sha256(*(file.read_bytes() for file in _CODE))}
  ledger INTEGER NOT NULL, author TEXT NOT NULL, sha256 TEXT NOT NULL, newest INTEGER NOT NULL,
  first_at TEXT NOT NULL, first_run TEXT NOT NULL, since INTEGER NOT NULL, gradings TEXT NOT NULL,
  pooled_ns INTEGER NOT NULL, low_ns INTEGER NOT NULL, high_ns INTEGER NOT NULL, confidence REAL NOT NULL,
  PRIMARY KEY (ledger, author, sha256, newest)
) WITHOUT ROWID;
"""
_NEW = "FROM line WHERE ledger = ? AND seq > ? AND run IS NOT NULL"
_NEWER = "newest = iif(excluded.moment > moment, excluded.newest, newest), moment = max(moment, excluded.moment)"
_DERIVED = (  # in a query with one max(), a bare column is of the row that has it
    f"""INSERT INTO seen SELECT ledger, setting, min(seq), seq, max(moment) {_NEW} GROUP BY setting
    ON CONFLICT DO UPDATE SET {_NEWER}""",
    f"""INSERT INTO tally SELECT ledger, author, outcome, count(*), last, seq, max(moment) FROM (
      SELECT *, max(seq) OVER (PARTITION BY author, outcome) AS last {_NEW}
    ) GROUP BY author, outcome
    ON CONFLICT DO UPDATE SET verdicts = verdicts + excluded.verdicts, last = excluded.last, {_NEWER}""",
    f"""INSERT INTO day SELECT ledger, day, count(*), sum({ACCEPTED}) {_NEW} GROUP BY day
    ON CONFLICT DO UPDATE SET verdicts = verdicts + excluded.verdicts, accepted = accepted + excluded.accepted""",
)
_WAIT_S = 30.0  # while another process reads a large ledger into the index
_AT_ONCE = 100  # lines that are inserted together
_COLUMNS = 31


class Index:
    """One database for any number of ledgers. Without a file it is in memory, one for each thread."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._own = file, threading.local()

    @contextmanager
    def lines(self, ledger: Path, until: datetime | None = None) -> Iterator[Lines]:
        """The lines of a ledger now, without verdicts made after `until`, to be read within the block.

        Raises:
            LedgerError: its chain is broken; the message names the line.
            OSError: it cannot be read.
        """
        with ExitStack() as opened:  # a connection is in a reference cycle, so that it would be closed much later
            yield self._updated(ledger, until, opened)

    def _updated(self, ledger: Path, until: datetime | None, opened: ExitStack) -> Lines:
        if self._file is not None and ledger.exists():  # without a ledger, no file is made
            for _ in range(2):
                try:
                    connection = opened.enter_context(closing(_connected(self._file)))
                    return _Update(connection, ledger, until).lines(opened)
                except sqlite3.OperationalError:  # it cannot be written, or another process keeps it locked
                    opened.close()
                    break
                except sqlite3.Error:  # it is damaged, or not a database
                    opened.close()
                    with suppress(OSError):
                        self._file.unlink()
        memory = self._in_memory()
        opened.callback(memory.rollback)
        return _Update(memory, ledger, until).lines(opened)

    def _in_memory(self) -> sqlite3.Connection:
        if getattr(self._own, "memory", None) is None:
            self._own.memory = sqlite3.connect(":memory:", isolation_level=None)
            self._own.memory.executescript(_TABLES)
        connection: sqlite3.Connection = self._own.memory
        return connection


def _connected(file: Path) -> sqlite3.Connection:
    """A connection to the database, which is made if it does not exist.

    Raises:
        sqlite3.Error: it cannot be written, or has other tables.
    """
    try:
        if not file.parent.is_dir():
            file.parent.mkdir(parents=True)
            (file.parent / ".gitignore").write_text("*\n", encoding="ascii")
        connection = sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _schema(connection):
            connection.execute("BEGIN IMMEDIATE")
            if not _schema(connection):  # otherwise another process has made the tables
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
            connection.execute("COMMIT")
        if _schema(connection) != _expected():
            raise sqlite3.DatabaseError("it has another schema")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    """All definitions in a database: its tables, and any triggers that somebody may have added."""
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()


@cache
def _expected() -> list[tuple[str, ...]]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(_TABLES)
    found = _schema(connection)
    connection.close()
    return found


class _Update:
    """Brings the index of one ledger up to date, or of a view of it that ends at a moment."""

    def __init__(self, database: sqlite3.Connection, ledger: Path, until: datetime | None = None) -> None:
        self._database, self._ledger, self._until = database, ledger, until
        self._name = os.path.abspath(ledger)  # noqa: PTH100 - links are kept: a ledger may be one
        if until is not None:
            self._name += f"\0{utc(until).isoformat()}"
        self._settings = dict[str, int]()

    def lines(self, opened: ExitStack) -> Lines:
        """The lines, with the ledger's file open until `opened` is closed."""
        try:
            file = opened.enter_context(chain.opened(self._ledger))
        except FileNotFoundError:
            return self._of(0)
        while True:
            self._database.execute("BEGIN")  # from here on, all reads see the same state
            if (number := self._current(file)) is not None:
                return self._of(number, file)
            self._database.execute("ROLLBACK")
            self._database.execute("BEGIN IMMEDIATE")
            if self._current(file) is None:  # otherwise another process has updated it
                self._read(file)
            self._database.execute("COMMIT")

    def _current(self, file: BinaryIO) -> int | None:
        """The ledger's number if all its lines are indexed; else None."""
        row = self._row()
        return row[0] if row is not None and row[1:] == _state(file) and self._stands(file, row[0]) else None

    def _read(self, file: BinaryIO) -> None:
        """Read the appended lines, or all lines if that is not enough, and store the state of the file."""
        state, whole, row = _state(file), chain.end(file), self._row()
        last = self._of(row[0]).last() if row is not None else None
        if row is not None and last is not None and row[1:3] == state[:2]:
            place, prev = last
            # What has grown may be indexed already, if it was appended after `_state`, or be a part of a line.
            appended = whole > place.start + place.length
            if (appended or state[2] > row[3]) and self._stands(file, row[0]):
                is_new = self._insert(row[0], chain.walk(self._ledger, file, place, prev), place.seq)
                if is_new or not appended:
                    update = "UPDATE ledger SET size = ?, mtime_ns = ? WHERE id = ?"
                    self._database.execute(update, (*state[2:], row[0]))
                    return
        if row is not None:
            for table in ("line", "source", "seen", "tally", "day"):
                self._database.execute(f"DELETE FROM {table} WHERE ledger = ?", (row[0],))
            self._database.execute("DELETE FROM ledger WHERE id = ?", (row[0],))
        columns = "INSERT INTO ledger (path, device, inode, size, mtime_ns) VALUES (?, ?, ?, ?, ?)"
        number = int(self._database.execute(columns, (self._name, *state)).lastrowid or 0)
        self._insert(number, chain.walk(self._ledger, file, None, NO_HASH))

    def _row(self) -> tuple[int, ...] | None:
        """The ledger's number, and the state of its file when it was read."""
        query = "SELECT id, device, inode, size, mtime_ns FROM ledger WHERE path = ?"
        row: tuple[int, ...] | None = self._database.execute(query, (self._name,)).fetchone()
        return row

    def _of(self, number: int, file: BinaryIO | None = None) -> Lines:
        return Lines(self._database, number, self._ledger, file, self._until)

    def _stands(self, file: BinaryIO, number: int) -> bool:
        """Whether the last indexed line is still in its place, unchanged by its hash."""
        if (last := self._of(number).last()) is None:
            return True
        place, digest = last
        try:
            entry = decode(os.pread(file.fileno(), place.length, place.start))
        except ValueError:
            return False
        return (entry.seq, entry.hash) == (place.seq, digest)

    def _insert(self, number: int, walked: Iterator[tuple[Entry, LinePlace]], since: int = 0) -> bool:
        """Insert the lines after line `since`; returns whether there are any."""
        insert, new = f"INSERT INTO line VALUES ({', '.join('?' * _COLUMNS)})", False
        while found := [*itertools.islice(walked, _AT_ONCE)]:
            rows = [(number, *self._values(*line)) for line in found if not after(line[0], self._until)]
            self._database.executemany(insert, rows)
            new = True
        if new:
            self._derive(number, since)
        return new

    def _derive(self, number: int, since: int) -> None:
        """Update what is derived from the lines; those after line `since` are new."""
        for statement in _DERIVED:
            self._database.execute(statement, (number, since))
        changed = f"SELECT DISTINCT author, sha256 FROM line WHERE ledger = ?1 AND seq > ?2 AND {ACCEPTED}"
        rows = self._database.execute(GRADINGS.format(changed), (number, since))
        sources = pooled(map(self._of(number).made, rows))
        changed = f"DELETE FROM source WHERE ledger = ?1 AND (author, sha256) IN ({changed})"
        self._database.execute(changed, (number, since))
        insert = f"INSERT INTO source VALUES ({', '.join('?' * 12)})"
        self._database.executemany(insert, [(number, *_source_row(source)) for source in sources])

    def _values(self, entry: Entry, place: LinePlace) -> tuple[object, ...]:
        head = (*place, entry.hash, entry.kind)
        if entry.kind != VERDICT:
            event = entry.document.decode() if entry.kind in EVENTS else None
            return (*head, event, *[None] * (_COLUMNS - len(head) - 2))
        try:
            fields = fields_of(entry)
        except LedgerError as error:
            return (*head, None, error.what, error.remedy, *[None] * (_COLUMNS - len(head) - 4))
        values = fields._replace(
            outcome=fields.outcome.value,  # type: ignore[arg-type]
            created_at=fields.created_at.isoformat(),  # type: ignore[arg-type]
            setting=self._number(fields.setting),  # type: ignore[arg-type]
        )
        moment = (fields.created_at - EPOCH) // MICROSECOND
        day = utc(fields.created_at).date().isoformat()
        return (*head, None, None, None, *values[2:-2], moment, day)  # without what `head` has

    def _number(self, setting: Setting) -> int:
        """The number of a setting in the database."""
        text = setting.model_dump_json(exclude_unset=True)
        if text not in self._settings:
            self._database.execute("INSERT OR IGNORE INTO setting (json) VALUES (?)", (text,))
            row = self._database.execute("SELECT id FROM setting WHERE json = ?", (text,)).fetchone()
            self._settings[text] = row[0]
        return self._settings[text]


def _source_row(source: PooledSource) -> tuple[object, ...]:
    newest, score = source.verdict, source.score
    file, first = (newest.author, newest.sha256, newest.seq), (source.first.created_at.isoformat(), source.first.run)
    times = score.median_ns, score.low_ns, score.high_ns, score.confidence
    return (*file, *first, source.since, ",".join(source.gradings), *times)


def _state(file: BinaryIO) -> tuple[int, int, int, int]:
    """The device and inode of a file, its size, and when it was last written."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
