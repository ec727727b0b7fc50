"""The database: one thread writes, and commits all waiting changes together; readers have their own connections.

SQLite with a write-ahead log and `synchronous=FULL`: once a future of `write` has its result, the change is on the
disk. The SQL is portable (SQLAlchemy Core).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, Row, create_engine, event

T = TypeVar("T")
AnyRow = Row[*tuple[Any, ...]]
_TOGETHER = 64  # changes in one commit at most
_AFTER = "after commit"  # the key of the calls in `Connection.info`


class _Change(NamedTuple):
    make: Callable[[Connection], Any]
    result: Future[Any]


class Database:
    """A server opens it once; `migrations.upgrade` must have made the schema."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = engine_of(path)
        self._changes: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._closed, self._closing = False, threading.Lock()
        self._thread = threading.Thread(target=self._run, name="database", daemon=True)
        self._thread.start()

    def write(self, change: Callable[[Connection], T]) -> Future[T]:
        """Make a change in a transaction; the future has its result once that is durable.

        Changes are made one after the other. One that raises is rolled back alone, and its future raises the same
        error. A change must not wait for anything, since all others wait for it.

        Raises:
            RuntimeError: the database is closed.
        """
        result: Future[T] = Future()
        with self._closing:
            if self._closed:
                raise RuntimeError("the database is closed")
            self._changes.put(_Change(change, result))
        return result

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees what was committed when it first reads; it must not write."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
            try:
                yield connection
            finally:
                connection.rollback()
                connection.exec_driver_sql("PRAGMA query_only = OFF")

    def close(self) -> None:
        """Make the changes that wait, and close. Idempotent."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._changes.put(None)
        self._thread.join()
        self._engine.dispose()

    def _run(self) -> None:
        with self._engine.connect() as connection:
            while (first := self._changes.get()) is not None:
                changes, ended = [first], False
                while len(changes) < _TOGETHER and not ended:
                    try:
                        more = self._changes.get_nowait()
                    except queue.Empty:
                        break
                    if more is None:
                        ended = True
                    else:
                        changes.append(more)
                _commit(connection, changes)
                if ended:
                    return


def after_commit(connection: Connection, call: Callable[[], None]) -> None:
    """Call a function once the present change is durable; if it is rolled back, never. The call must not raise."""
    connection.info.setdefault(_AFTER, []).append(call)


def _commit(connection: Connection, changes: list[_Change]) -> None:
    """Make changes in one transaction, each in a savepoint, and set their futures after the commit."""
    changes = [change for change in changes if change.result.set_running_or_notify_cancel()]
    results: list[tuple[Future[Any], Any]] = []
    calls: list[Callable[[], None]] = []
    try:
        with connection.begin():
            for change in changes:
                connection.info[_AFTER] = []
                savepoint = connection.begin_nested()
                try:
                    value = change.make(connection)
                    savepoint.commit()
                except Exception as error:  # it belongs to the caller of `write`
                    if not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
                        raise  # the disk is full, say: SQLite has undone the changes before it, too
                    savepoint.rollback()
                    change.result.set_exception(error)
                else:
                    results.append((change.result, value))
                    calls += connection.info[_AFTER]
    except Exception as error:  # noqa: BLE001 - none of them was made
        for change in changes:
            if not change.result.done():
                change.result.set_exception(error)
        return
    for result, value in results:
        result.set_result(value)
    for call in calls:
        call()


def engine_of(path: Path) -> Engine:
    """An engine on a file, which need not exist yet."""
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30.0})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # SQLAlchemy's own BEGIN, below, is the only one
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine
