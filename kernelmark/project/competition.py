"""The state of a competition at a moment: its phase, its announcements, and whether it is frozen or closed.

The command line, the site and servers use it. It follows from `problem.toml` and the settings. A change of these
affects what is shown and accepted from then on, and never the record. Trusted.
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
    """Results after this moment are not shown; None: all are shown."""
    closed: datetime | None
    """When it was closed for submissions; None: it is open."""
    phase: str
    """The name of the phase; empty if there are none."""
    announcements: tuple[Announcement, ...]
    """The announcements until then, newest first; for a problem, only those about it."""


def state(settings: Settings, slug: str | None, now: datetime) -> State:
    """The state at `now` of a problem, or of the whole competition if `slug` is None.

    A problem without a deadline, or that cannot be read, has the schedule of the phase, if there are phases.
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
    """A problem's own schedule if it has a deadline, else that of the phase at `now`."""
    return own if own is not None and own.deadline else settings.phase(now) or Schedule()
