"""Upgrades a server's database to the schema of this version, with Alembic. `serve` calls it before it opens one.

A new database is made of the present tables at once. For an older one each module of `versions` is one step, and
Alembic runs those that it lacks in `env.py`. Within a minor version, steps only add.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DatabaseError, OperationalError

from harness.errors import UsageError
from kernelmark.server.database.database import engine_of
from kernelmark.server.database.tables import metadata

_HERE = Path(__file__).parent
VERSIONS = (_HERE / "versions",)
"""The folders of the steps."""


def upgrade(path: Path) -> None:
    """Make the database if there is none, else bring it to the present schema; only its user can read the file.

    Before an older schema is changed, the file is copied to `NAME.before-REVISION` next to it. A change that fails
    leaves the database as it was.

    Raises:
        UsageError: the file cannot be opened or is not a database of a server, or its schema is newer than this
            version of kernelmark.
        OSError: it cannot be made or copied.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    scripts = ScriptDirectory(str(_HERE), version_locations=[*map(str, VERSIONS)])
    engine = engine_of(path)
    try:
        present = _revision(engine, path, scripts)
        if present == scripts.get_current_head():
            return
        if present is not None:
            _copy(path, path.with_name(f"{path.name}.before-{scripts.get_current_head()}"))
        with engine.begin() as connection:
            if present is None:
                metadata.create_all(connection)
                MigrationContext.configure(connection).stamp(scripts, "head")
            else:
                command.upgrade(_config(connection), "head")
    finally:
        engine.dispose()


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(str, VERSIONS)).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _revision(engine: Engine, path: Path, scripts: ScriptDirectory) -> str | None:
    """The schema that the database has; None: it is empty."""
    try:
        with engine.connect() as connection:
            tables = inspect(connection).get_table_names()
            present = MigrationContext.configure(connection).get_current_revision()
    except OperationalError as error:  # it may well be one
        remedy = "see that nothing else uses it, that you may read and write it and its folder, and that there is room"
        raise UsageError(str(path), f"cannot be opened ({error.orig})", remedy) from error
    except DatabaseError as error:
        raise UsageError(str(path), "is not a database", "move it away; a new one is made") from error
    if present is None and tables:
        raise UsageError(str(path), "is not the database of a server", "move it away; a new one is made")
    if present is not None and present not in {script.revision for script in scripts.walk_revisions()}:
        what = f"was written by a newer kernelmark (schema {present})"
        raise UsageError(str(path), what, "upgrade this one: pip install --upgrade 'kernelmark[server]'")
    return present


def _copy(path: Path, to: Path) -> None:
    """Copy a database with what its log holds."""
    os.close(os.open(to, os.O_RDWR | os.O_CREAT, 0o600))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as copy:
        source.backup(copy)
