"""What holds for a problem of a competition at a moment: one answer for the command line, the site and a server.

It follows from the rules in `problem.toml` and in the settings. Trusted. What is recorded never changes with them: a
rule that is changed later decides only what is shown and taken from then on.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from harness.errors import ProblemError
from harness.problem.load import read_schedule
from harness.problem.schedule import Schedule
from kernelmark.project.phases import Announcement
from kernelmark.project.settings import Settings


@dataclass(frozen=True)
class State:
    """What holds at one moment for one problem, or for the competition."""

    schedule: Schedule
    frozen: datetime | None
    """No result made after this moment is shown; None: all are."""
    closed: datetime | None
    """Since when it takes no more submissions; None: it does."""
    phase: str
    """The name of the phase; empty if there are none."""
    announcements: tuple[Announcement, ...]
    """What was announced until then, newest first; of a problem only what is about it."""


def state(settings: Settings, slug: str | None, now: datetime) -> State:
    """The state of a problem of the project at `now`, or of the whole; one that is not there has the rules of the
    phase, or none.
    """
    phase = settings.phase(now)
    schedule: Schedule = phase or Schedule()
    if slug is not None:
        with suppress(ProblemError):
            own = read_schedule(settings.locate("problems") / slug)
            schedule = own if own.deadline else schedule
    try:
        frozen = None if settings.organizer else schedule.frozen(now)
        closed = schedule.closes if schedule.closed(now) else None
    except OverflowError:  # such a problem cannot be graded
        frozen = closed = None
    told = [each for each in settings.announcements if each.at <= now and (slug is None or each.problem == slug)]
    newest_first = tuple(sorted(told, key=lambda each: each.at, reverse=True))
    return State(schedule, frozen, closed, phase.name if phase is not None else "", newest_first)
