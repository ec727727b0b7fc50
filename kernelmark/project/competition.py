"""What holds for a problem of a competition at a moment: one answer for the command line, the site and a server.

It follows from the rules in `problem.toml` and in the settings. Trusted. What is recorded never changes with them: a
rule that is changed later decides only what is shown and taken from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from harness.errors import ProblemError
from harness.problem.load import read_schedule
from harness.problem.schedule import Schedule
from kernelmark.project.settings import Settings


@dataclass(frozen=True)
class State:
    """What holds for one problem at one moment."""

    schedule: Schedule
    frozen: datetime | None
    """No result made after this moment is shown; None: all are."""


def state(settings: Settings, slug: str, now: datetime) -> State:
    """The state of a problem of the project at `now`; one that is not there, or cannot be read, has no rules."""
    try:
        schedule = read_schedule(settings.locate("problems") / slug)
    except (ProblemError, OverflowError):
        schedule = Schedule()
    return State(schedule, None if settings.organizer else schedule.frozen(now))
