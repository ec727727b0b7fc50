"""Writes the board and a page per problem from the record, and decides which sources may be shown.

`recording` calls it after every append, and the command line to write everything again. Trusted. Writers take turns.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from harness import outside
from harness.errors import ProblemError
from harness.problem import Problem, load
from harness.problem.schedule import Schedule
from kernelmark.project.problems import problem_directories
from kernelmark.project.settings import Settings
from kernelmark.record.records import current, ledgers, tables
from leaderboard.publishing.markdown import FOLDER, board, spliced, write_board
from leaderboard.publishing.problem_page import page
from leaderboard.record.archive import location
from leaderboard.record.current import Current
from leaderboard.record.durable import make_directory
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import Table, rank
from leaderboard.standings.visibility import Rule, visible_source


def publish(settings: Settings, slug: str) -> list[Table]:
    """Update the board and one problem's page after its ledger changed; returns that problem's tables.

    The ledgers of other problems are not read, unless the board has to be rebuilt.

    Raises:
        HarnessError: a file could not be written.
    """
    path, title = settings.locate("board"), settings.title or ""
    with _locked(settings.locate("results")):  # otherwise, of two concurrent writers, the older view could win
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
    standings, moment = rank(ledger.read(), now, settings.teams), datetime.now(UTC)
    rows = {row.seq: row for table in standings for row in table.rows}
    entries = [entry for entry in ledger.read() if entry.seq in rows]
    links = {}
    for entry in entries:
        row = rows[entry.seq]
        if visible_source(entry, allowed.get(slug), moment):
            path = location(settings.locate("archive"), slug, row.author, row.sha256, row.submission)
            links[row.run] = Path(os.path.relpath(path, folder)).as_posix()
    schedule = allowed[slug].schedule if slug in allowed else ""
    write_board(folder / f"{slug}.md", page(slug, standings, entries, links, schedule))
    return standings


def rules(settings: Settings, slug: str | None = None) -> dict[str, Rule]:
    """When the sources of one problem, or of each, may be shown; a problem that cannot be read has no rule."""
    by_slug = {}
    for directory in problem_directories(settings):
        with suppress(ProblemError):
            if slug not in (None, directory.name):
                continue  # reading all problems would take longer than the rest of the update
            problem = load(directory, checkouts=settings.checkouts)
            by_slug[problem.slug] = rule(problem)
    return by_slug


def rule(problem: Problem) -> Rule:
    """When the sources of a problem may be shown."""
    schedule = {key: getattr(problem, key) for key in Schedule.model_fields}
    return Rule(problem=problem.slug, visibility=problem.visibility, **schedule)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, against other processes that take it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
