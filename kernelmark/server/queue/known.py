"""What admission must know of the project's files without reading them: problems, and what the ledgers have of today.

The writer of the database must not wait for files. So the sweeper reads them, each minute, and replaces what is known.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, select

from harness.errors import HarnessError, ProblemError, nearest
from harness.problem import Problem
from harness.problem.load import load
from kernelmark.project.problems import problem_directories
from kernelmark.project.project import Project
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import recorded_uses
from kernelmark.server.clock import Clock, moment
from kernelmark.server.database.database import Database
from kernelmark.server.database.tables import gradings, sources, submissions
from kernelmark.service.refusal import Refusal
from leaderboard.standings.usage import DAY, Use

DAY_NS = round(DAY.total_seconds() * 1e9)
_LOG = logging.getLogger("kernelmark.server")


@dataclass(frozen=True)
class Known:
    """One reading; immutable."""

    problems: Mapping[str, Problem] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    """Why other problems cannot be graded, by slug."""
    uses: tuple[Use, ...] = ()
    """Of the last 24 hours: what the ledgers have and this server has not graded, oldest first."""

    def problem(self, slug: str) -> Problem:
        """A problem as everyone may see it: without private cases.

        Raises:
            Refusal: there is none, or it cannot be graded.
        """
        if slug in self.problems:
            return self.problems[slug]
        if slug in self.broken:
            remedy = "its organizers must correct it"
            raise Refusal(503, "problem-broken", f"problem {slug}", "cannot be graded at present", remedy)
        remedy = nearest(slug, list(self.problems))
        raise Refusal(404, "no-such-problem", f"problem {slug!r}", "does not exist", remedy)


@dataclass
class Amounts:
    """How much waits, and has been used. The writer of the database adds to it what it admits."""

    queued: int = 0
    queued_bytes: int = 0
    day_device_ns: int = 0
    """What all gradings of the last 24 hours took, and those under way are expected to."""


class Files:
    """Keeps the newest reading. The sweeper refreshes it, others read."""

    def __init__(self, project: Project, clock: Clock) -> None:
        self._project, self._clock = project, clock
        self._refreshing = threading.Lock()
        self._read: dict[str, tuple[object, Problem | str]] = {}
        self.known = Known()
        self.amounts = Amounts()

    def refresh(self, database: Database) -> None:
        """Read what has changed: before the server serves, and then each minute."""
        with self._refreshing:
            found = {directory.name: self._problem(directory) for directory in problem_directories(self._settings)}
            problems = {slug: one for slug, one in found.items() if isinstance(one, Problem)}
            broken = {slug: one for slug, one in found.items() if isinstance(one, str)}
            self.known = Known(problems, broken, self._uses(database))
        self.refresh_amounts(database)

    def refresh_amounts(self, database: Database) -> None:
        """Count anew what waits, and what was used today."""
        stored = gradings.join(submissions, submissions.c.run == gradings.c.submission)
        stored = stored.join(sources, sources.c.sha256 == submissions.c.source)
        waiting = select(func.count(), func.coalesce(func.sum(sources.c.bytes), 0)).select_from(stored)
        took = func.coalesce(gradings.c.device_ns, gradings.c.expected_ns)
        counted = gradings.c.charged | gradings.c.state.in_(("queued", "leased"))
        today = gradings.c.queued_ns > self._clock.now_ns() - DAY_NS
        with database.read() as connection:
            queued, queued_bytes = connection.execute(waiting.where(gradings.c.state == "queued")).one()
            used = connection.scalar(select(func.coalesce(func.sum(took), 0)).where(today, counted))
        self.amounts = Amounts(queued, queued_bytes, used + sum(use.device_ns for use in self.known.uses))

    @property
    def _settings(self) -> Settings:
        return self._project.settings

    def _problem(self, directory: Path) -> Problem | str:
        """The problem in a folder, without private cases and with its own schedule; a text: why it cannot be graded."""
        files = [directory / name for name in ("problem.toml", "reference.py")]
        changed = [(stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in map(_stat, files) if stat is not None]
        before, found = self._read.get(directory.name, (None, ""))
        if before != changed:
            try:
                found = load(directory, checkouts=self._settings.checkouts)
            except ProblemError as error:
                found = str(error)
                _LOG.warning("problem %s cannot be graded: %s", directory.name, error)
            self._read[directory.name] = changed, found
        return found

    def _uses(self, database: Database) -> tuple[Use, ...]:
        """What the ledgers have of the last 24 hours that is not among the gradings."""
        try:
            recorded = recorded_uses(self._settings, moment(self._clock.now_ns()))
        except HarnessError as error:
            _LOG.warning("the limits a day leave out what was recorded elsewhere: %s", error)
            return self.known.uses
        runs = {use.run for use in recorded}
        with database.read() as connection:
            own = set[str]()
            for some in _batches(sorted(runs), 500):
                own.update(connection.scalars(select(gradings.c.run).where(gradings.c.run.in_(some))))
        return tuple(sorted((use for use in recorded if use.run not in own), key=lambda use: use.at))


def _batches(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None
