"""Daily limits, phases and announcements: the settings of a competition. Trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from harness.problem.keys import Deadline
from harness.problem.schedule import Schedule


class DailyLimits(BaseModel):
    """How much of each author or team is graded and recorded in 24 hours, over all problems; None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gradings_a_day: Annotated[int, Field(ge=1)] | None = None
    device_seconds_a_day: Annotated[int, Field(ge=1)] | None = None
    """A grading may begin while less than this has been used."""
    checks_a_day: Annotated[int, Field(ge=1)] | None = None
    """On a server: how many submissions are tested without being timed."""
    queued_at_once: Annotated[int, Field(ge=1)] | None = None
    """On a server: how many submissions may wait or be graded at a time."""
    all_device_seconds_a_day: Annotated[int, Field(ge=1)] | None = None
    """On a server: the device seconds of all authors together."""


class Phase(Schedule):
    """A part of a competition, which begins when the part before it closes.

    It applies to problems without a deadline of their own. If the folder of private cases has a folder with the name of
    the phase, only the cases in that folder count during the phase.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    deadline: Deadline
    limits: DailyLimits | None = None
    """The limits in this phase, in place of those of the project."""


class Announcement(BaseModel):
    """A text that is shown from a moment on, to everyone or to the participants of one problem."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    problem: str | None = None


def refuse_disorder(phases: Sequence[Phase]) -> None:
    """Raise a ValueError if two phases have the same name, one ends before the previous one closes, or one could not be
    the schedule of a problem.
    """
    try:
        for phase in phases:
            _ = phase.freezes  # it may be before the calendar
            if phase.is_late_in_grace:
                raise ValueError(f"the `grace` of {phase.name} is not shorter than the time of `late`; shorten it")
        for before, after in pairwise(phases):
            if before.closes is None or before.closes >= after.deadline:
                raise ValueError(f"the phase {after.name} ends before {before.name} closes; give them in order")
    except OverflowError:
        raise ValueError("a phase has no end on the calendar; set an earlier deadline") from None
    if len({phase.name for phase in phases}) < len(phases):
        raise ValueError("two phases have one name; give each its own")


def open_at(phases: Sequence[Phase], moment: datetime) -> Phase | None:
    """The phase that is open at a moment, or the last one; None if there are none."""
    return next((phase for phase in phases if not phase.closed(moment)), next(reversed(phases), None))
