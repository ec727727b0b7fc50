"""A snapshot of the project's files: its problems, and what the ledgers have of today.

The writer of the database must not wait for files. So the sweeper reads them, each minute, and replaces the snapshot.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, select

from harness.errors import HarnessError, ProblemError, nearest
from harness.files.outside import stamp
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
_TOGETHER = 500  # runs in one query
_LOG = logging.getLogger("kernelmark.server")


@dataclass(frozen=True)
class ProjectSnapshot:
    """What the files said when they were last read; immutable."""

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
class QueueTotals:
    """How much is queued and was used. The writer of the database adds what it admits."""

    queued: int = 0
    queued_bytes: int = 0
    day_device_ns: int = 0
    """What all gradings of the last 24 hours took, and those under way are expected to."""


class ProjectFiles:
    """Keeps the newest snapshot. The sweeper refreshes it, others read it."""

    def __init__(self, project: Project, clock: Clock) -> None:
        self._project, self._clock = project, clock
        self._refreshing = threading.Lock()
        self._read: dict[str, tuple[object, Problem | str]] = {}
        self.snapshot = ProjectSnapshot()
        self.totals = QueueTotals()

    def refresh(self, database: Database) -> None:
        """Read what has changed: before the server serves, and then each minute."""
        with self._refreshing:
            found = {directory.name: self._problem(directory) for directory in problem_directories(self._settings)}
            problems = {slug: problem for slug, problem in found.items() if isinstance(problem, Problem)}
            broken = {slug: why for slug, why in found.items() if isinstance(why, str)}
            self.snapshot = ProjectSnapshot(problems, broken, self._uses(database))
        self.refresh_totals(database)

    def refresh_totals(self, database: Database) -> None:
        """Count again what is queued, and what was used today."""
        stored = gradings.join(submissions, submissions.c.run == gradings.c.submission)
        stored = stored.join(sources, sources.c.sha256 == submissions.c.source)
        waiting = select(func.count(), func.coalesce(func.sum(sources.c.bytes), 0)).select_from(stored)
        took = func.coalesce(gradings.c.device_ns, gradings.c.expected_ns)
        counted = gradings.c.charged | gradings.c.state.in_(("queued", "leased"))
        today = gradings.c.queued_ns > self._clock.now_ns() - DAY_NS
        with database.read() as connection:
            queued, queued_bytes = connection.execute(waiting.where(gradings.c.state == "queued")).one()
            used = connection.scalar(select(func.coalesce(func.sum(took), 0)).where(today, counted))
        self.totals = QueueTotals(queued, queued_bytes, used + sum(use.device_ns for use in self.snapshot.uses))

    @property
    def _settings(self) -> Settings:
        return self._project.settings

    def _problem(self, directory: Path) -> Problem | str:
        """The problem in a folder, without private cases and with its own schedule; a text: why it cannot be graded."""
        changed = [stamp(directory / name) for name in ("problem.toml", "reference.py")]
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
            return self.snapshot.uses
        with database.read() as connection:
            own = set[str]()
            for start in range(0, len(recorded), _TOGETHER):
                some = [use.run for use in recorded[start : start + _TOGETHER]]
                own.update(connection.scalars(select(gradings.c.run).where(gradings.c.run.in_(some))))
        return tuple(sorted((use for use in recorded if use.run not in own), key=lambda use: use.at))
