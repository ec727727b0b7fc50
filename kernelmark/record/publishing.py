"""Writes the board and a page for each problem from the record, and decides which sources may be shown.

A command calls it after it has recorded, and a fleet at most once a second (`Publisher`). Trusted. A lock allows one
writer at a time.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from harness.errors import HarnessError, ProblemError
from harness.files import outside
from harness.problem import Problem, load
from harness.problem.schedule import Schedule
from harness.verdict import Verdict
from kernelmark.project.problems import problem_directories
from kernelmark.project.settings import Settings
from kernelmark.record.records import current, ledgers, published, tables
from kernelmark.text.terminal import warn
from leaderboard.publishing.markdown import DETAILED, FOLDER, board, page, spliced, write_board
from leaderboard.record.archive import location
from leaderboard.record.current import Current
from leaderboard.record.durable import make_directory
from leaderboard.record.fields import TableKey
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import Table, rank
from leaderboard.standings.visibility import Rule

_EVERY_S = 1.0
_REBUILD = "`kernelmark board --write` rebuilds the board"


def publish(settings: Settings, slug: str) -> list[Table]:
    """Update the board and one problem's page after its ledger changed; returns that problem's tables.

    The ledgers of other problems are not read, unless the board has to be rebuilt.

    Raises:
        HarnessError: a file could not be written; the record is not affected.
    """
    try:
        return _updated(settings, slug)
    except HarnessError as error:
        remedy = error.remedy or _REBUILD
        raise HarnessError(f"it is recorded, but {error.what}", remedy) from error


def table_of(tables: Sequence[Table], verdict: Verdict) -> Table | None:
    """The table of an accepted verdict; warns if the verdict lacks the private cases of other results."""
    slug, private = verdict.problem.slug, any(table.private for table in tables)
    if private and verdict.problem.private is None:
        warn(f"{slug} has results with private cases, but this one has none: is `private_cases` set?")
    if verdict.score is None:
        return None
    key = TableKey.of(verdict)
    return next((table for table in tables if table.key == key), None)


class Publisher:
    """Publishes boards in a thread, each at most once a second, as a fleet records faster than that."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        """The settings for the next board; a server replaces them when its teams change."""
        self._due, self._changed, self._closed = set[str](), threading.Condition(), False
        self._error: HarnessError | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def due(self, slug: str) -> None:
        """Publish the board of a problem soon."""
        with self._changed:
            self._due.add(slug)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Publish the boards that are due, and end; warns if one could not be written. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            warn(str(self._error))
            self._error = None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._closed)
                if not self._due:
                    return
                slugs, self._due = self._due, set()
            for slug in sorted(slugs):
                try:
                    publish(self.settings, slug)
                except HarnessError as error:
                    self._error = error
                except Exception as error:  # noqa: BLE001 - a server must continue to write boards
                    self._error = HarnessError(f"the board of {slug} was not written ({error!r})", _REBUILD)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, _EVERY_S)


def _updated(settings: Settings, slug: str) -> list[Table]:
    settings = published(settings)
    path, title = settings.locate("board"), settings.title or ""
    with _locked(settings.locate("results")):  # otherwise a concurrent writer could replace the board by an older one
        (ledger,) = ledgers(settings, slug)
        mine = _write_page(settings, ledger, current(settings), rules(settings, slug))
        old = outside.text(path, errors="replace") if path.is_file() else ""
        write_board(path, spliced(old, slug, mine, title) or board(tables(settings), title))
    return mine


def publish_all(settings: Settings) -> list[Table]:
    """Rebuild the board and every problem's page from the ledgers; returns all tables.

    Raises:
        HarnessError: a file could not be written.
    """
    settings = published(settings)
    make_directory(settings.locate("results"))
    with _locked(settings.locate("results")):
        now, allowed = current(settings), rules(settings)
        by_problem = [_write_page(settings, ledger, now, allowed) for ledger in ledgers(settings)]
        every = [table for tables in by_problem for table in tables]
        write_board(settings.locate("board"), board(every, settings.title or ""))
    return every


def _write_page(settings: Settings, ledger: JsonlLedger, now: Current, allowed: dict[str, Rule]) -> list[Table]:
    """Write one problem's page; returns its tables."""
    slug, folder = ledger.path.stem, settings.locate("board").parent / FOLDER
    standings, moment = rank(ledger, now, settings.teams), datetime.now(UTC)
    links, rule = {}, allowed.get(slug)
    if rule is not None and not rule.hidden(moment):
        for row in (row for table in standings if table.key.problem == slug for row in table.rows):
            path = location(settings.locate("archive"), slug, row.author, row.sha256, row.submission)
            links[row.run] = Path(os.path.relpath(path, folder)).as_posix()
    entries = ledger.at({row.seq for table in standings for row in table.rows[:DETAILED]})
    schedule = allowed[slug].schedule if slug in allowed else ""
    write_board(folder / f"{slug}.md", page(slug, standings, entries, links, schedule))
    return standings


def rules(settings: Settings, slug: str | None = None) -> dict[str, Rule]:
    """The rules for showing the sources of one problem or of all; a problem that cannot be read has no rule."""
    by_slug = {}
    for directory in problem_directories(settings):
        with suppress(ProblemError):
            if slug not in (None, directory.name):
                continue  # reading every problem would take longer than the rest of the update
            problem = load(directory, checkouts=settings.checkouts, schedule=settings.phase())
            by_slug[problem.slug] = rule(problem)
    return by_slug


def rule(problem: Problem, schedule: Schedule | None = None) -> Rule:
    """The rule for showing the sources of a problem; with this schedule, if that is not its own."""
    times = {key: getattr(schedule or problem, key) for key in Schedule.model_fields}
    return Rule(problem=problem.slug, visibility=problem.visibility, **times)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which excludes other processes that use it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that was forked meanwhile holds it, too
        os.close(descriptor)
