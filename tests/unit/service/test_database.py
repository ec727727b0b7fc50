"""The writer of the database: what it says is on the disk is there."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import OperationalError

from kernelmark.server.database import migrations
from kernelmark.server.database.database import Database
from kernelmark.server.database.tables import facts


def test_a_full_disk_loses_nothing_that_was_said_to_be_written(tmp_path: Path) -> None:
    """SQLite then undoes a whole transaction, with the changes that were made before the one that found no room."""
    migrations.upgrade(path := tmp_path / "server.db")
    together, made = threading.Event(), dict[str, Future[None]]()

    def put(key: str, size: int) -> None:
        def change(connection: Connection) -> None:
            connection.execute(facts.insert().values(key=key, value="x" * size))

        made[key] = database.write(change)

    with closing(Database(path)) as database:

        def pragma(text: str) -> int:
            return int(database.write(lambda c: c.exec_driver_sql(f"PRAGMA {text}").scalar_one()).result(10))

        pragma(f"max_page_count = {pragma('page_count') + 4}")
        database.write(lambda _: together.wait(10))
        put("before", 10)
        put("large", 100_000)
        put("after", 10)
        together.set()
        with pytest.raises(OperationalError, match="database or disk is full"):
            made["large"].result(10)
        said = {key for key in ("before", "after") if made[key].exception(10) is None}
        pragma("max_page_count = 100000")
        put("later", 10)
        made["later"].result(10)
        with database.read() as connection:
            assert set(connection.scalars(select(facts.c.key))) == {*said, "later"}
