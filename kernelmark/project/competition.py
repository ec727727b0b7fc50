"""The state of a competition at a moment: its phase, its announcements, and whether it is frozen or closed.

The command line, the site and servers ask for it here. It follows from `problem.toml` and the settings. Changing these
changes what is shown and accepted from then on, and nothing that is recorded. Trusted.
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
    """The state at one moment of one problem, or of the whole competition."""

    schedule: Schedule
    frozen: datetime | None
    """No result made after this moment is shown; None: all are."""
    closed: datetime | None
    """Since when it takes no more submissions; None: it still does."""
    phase: str
    """The name of the phase; empty if there are none."""
    announcements: tuple[Announcement, ...]
    """What was announced until then, newest first. A problem has only those that are about it."""


def state(settings: Settings, slug: str | None, now: datetime) -> State:
    """The state at `now` of a problem of the project, or of the whole competition if `slug` is None.

    A problem that has no deadline of its own, or cannot be read, has the schedule of the phase, if there are phases.
    """
    phase = settings.phase(now)
    schedule = schedule_of(settings, None, now)
    if slug is not None:
        with suppress(ProblemError):
            schedule = schedule_of(settings, read_schedule(settings.locate("problems") / slug), now)
    try:
        frozen = None if settings.organizer else schedule.frozen(now)
        closed = schedule.closes if schedule.closed(now) else None
    except OverflowError:  # a moment beyond the calendar; such a problem cannot be graded
        frozen = closed = None
    made = [notice for notice in settings.announcements if notice.at <= now and slug in (None, notice.problem)]
    newest_first = tuple(sorted(made, key=lambda notice: notice.at, reverse=True))
    return State(schedule, frozen, closed, phase.name if phase is not None else "", newest_first)


def schedule_of(settings: Settings, own: Schedule | None, now: datetime) -> Schedule:
    """The schedule at `now` of a problem with this one of its own: that of the phase if it has no deadline."""
    return own if own is not None and own.deadline else settings.phase(now) or Schedule()
