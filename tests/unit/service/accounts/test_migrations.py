"""The schema of the database: changed by steps, copied before that, and refused if it is newer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect

from harness.errors import UsageError
from kernelmark.server.database import migrations
from kernelmark.server.database.database import engine_of

FIRST = Path(__file__).parents[3] / "data" / "server-0.1.0.sql"


def test_the_steps_make_of_the_first_schema_what_a_new_database_has(tmp_path: Path) -> None:
    with closing(sqlite3.connect(old := tmp_path / "old.db")) as connection:
        connection.executescript(FIRST.read_text())
    for path in (old, new := tmp_path / "new.db"):
        migrations.upgrade(path)
    assert new.stat().st_mode & 0o777 == 0o600
    found, wanted = map(_schema, engines := [engine_of(old), engine_of(new)])
    assert found == wanted, "tables.py was changed without a step in migrations/versions"
    assert {"accounts", "gradings"} < set(wanted)
    for engine in engines:
        engine.dispose()


def test_what_is_up_to_date_stays_as_it_is(tmp_path: Path) -> None:
    migrations.upgrade(path := tmp_path / "server.db")
    _execute(path, "INSERT INTO facts VALUES ('a', 'b')")
    migrations.upgrade(path)
    assert _execute(path, "SELECT * FROM facts") == [("a", "b")]
    assert {file.name.removesuffix("-wal").removesuffix("-shm") for file in tmp_path.iterdir()} == {"server.db"}


def test_an_older_schema_is_copied_before_it_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations.upgrade(path := tmp_path / "server.db")
    _execute(path, "INSERT INTO facts VALUES ('a', 'b')")
    _add_step(tmp_path, monkeypatch, "op.add_column('facts', sa.Column('more', sa.Integer))")
    migrations.upgrade(path)
    assert _execute(path, "SELECT * FROM facts") == [("a", "b", None)]
    copy = tmp_path / "server.db.before-0002"
    assert _execute(copy, "SELECT * FROM facts") == [("a", "b")]
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations.upgrade(path := tmp_path / "server.db")
    step = "op.add_column('facts', sa.Column('more', sa.Integer)); op.execute('nonsense')"
    with monkeypatch.context() as patched:
        _add_step(tmp_path, patched, step)
        with pytest.raises(Exception, match="nonsense"):
            migrations.upgrade(path)
    migrations.upgrade(path)
    _execute(path, "INSERT INTO facts VALUES ('a', 'b')")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    migrations.upgrade(path := tmp_path / "server.db")
    _execute(path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UsageError, match=r"newer kernelmark \(schema 9999\); upgrade this one: pip install --upgrade"):
        migrations.upgrade(path)


@pytest.mark.parametrize("what", ["text", "tables"])
def test_another_file_is_refused_and_kept(what: str, tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    if what == "text":
        path.write_text("no database at all, and longer than the head of one: " + "x" * 200)
    else:
        _execute(path, "CREATE TABLE mine (id INTEGER)")
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"is not (a database|the database of a server); move it away"):
        migrations.upgrade(path)
    if what == "text":
        assert path.read_bytes() == before
    else:
        assert _execute(path, "SELECT name FROM sqlite_master") == [("mine",)]


def test_a_database_that_cannot_be_opened_now_is_not_to_be_moved_away(tmp_path: Path) -> None:
    """With it went all accounts."""
    migrations.upgrade(path := tmp_path / "server.db")
    (log := tmp_path / "server.db-wal").unlink(missing_ok=True)
    log.mkdir()
    with pytest.raises(UsageError, match=r"cannot be opened \(.+\); see that nothing else uses it"):
        migrations.upgrade(path)


def _schema(engine: Engine) -> dict[str, object]:
    """Everything of each table but the order of its columns, which adding one changes."""
    looked = inspect(engine)
    return {
        table: (
            sorted(
                (one["name"], str(one["type"]), one["nullable"], one["default"]) for one in looked.get_columns(table)
            ),
            looked.get_pk_constraint(table)["constrained_columns"],
            sorted((one["name"], one["column_names"], one["unique"]) for one in looked.get_indexes(table)),
            sorted(one["column_names"] for one in looked.get_unique_constraints(table)),
            sorted((one["constrained_columns"], one["referred_table"]) for one in looked.get_foreign_keys(table)),
        )
        for table in looked.get_table_names()
        if table != "alembic_version"
    }


def _add_step(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Have a second step, in a folder of its own that Alembic reads, too."""
    versions = folder / "versions"
    versions.mkdir()
    (versions / "second.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision = '0002', '0001'\ndef upgrade():\n    {body}\n"
    )
    monkeypatch.setattr(migrations, "VERSIONS", (*migrations.VERSIONS, versions))


def _execute(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()
