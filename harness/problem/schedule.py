"""The schedule of a problem: its deadline, grace period and late period, and when its board is frozen.

All code that opens, closes or reports a problem uses this module. Trusted; pure, imports no torch.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from harness.problem.keys import Deadline, Real, Spec

_DURATION = re.compile(r"(?=.)(?:(\d{1,3})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?")
_DAY = timedelta(days=1)


def length(text: str) -> timedelta:
    """Parse a length of time, such as `30m`, `1h30m` or `2d`; raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError("a length of time is written in days, hours and minutes: 2d, 1h30m, 30m")
    days, hours, minutes = (int(number or 0) for number in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes)


def _duration(text: str) -> str:
    length(text)
    return text


Duration = Annotated[str, AfterValidator(_duration)]


class Late(Spec):
    """How late submissions are accepted, and what that costs."""

    days: int = Field(strict=True, gt=0, le=366, description="how many days after the deadline they are accepted")
    penalty_per_day: Real = Field(ge=0, le=1, description="what each day begun takes off the mark: 0.1 for 10 %")


class Delay(NamedTuple):
    """How late something was submitted: 0 days if on time, otherwise the days begun since the deadline.

    The mark is multiplied by `factor`; None if the problem was closed, or accepts nothing late.
    """

    handed_in: datetime
    days: int
    factor: float | None

    def __str__(self) -> str:
        if not self.days:
            return "on time"
        late = f"{self.days} day{'' if self.days == 1 else 's'} late"
        return late if self.factor is None else f"{late}, factor {self.factor:g}"


class Schedule(Spec):
    """When a problem accepts submissions; always, if it has no deadline. All moments have time zones.

    These keys are rules of the competition, not part of the task, so the problem's hash excludes them.
    """

    deadline: Deadline | None = Field(default=None, description="the last moment to submit, with its time zone")
    grace: Duration | None = Field(default=None, description="how long after the deadline still counts as on time: 30m")
    late: Late | None = Field(default=None, description="for how many days it is accepted late, and what that costs")

    freeze: Duration | None = Field(
        default=None,
        description="how long before the deadline the board stops showing new results, until it closes: 2d",
    )

    @property
    def on_time_until(self) -> datetime | None:
        """The end of the grace period."""
        return None if self.deadline is None else self.deadline + length(self.grace or "0m")

    @property
    def closes(self) -> datetime | None:
        """The last moment at which anything is accepted, late or not."""
        if self.deadline is None or self.late is None:
            return self.on_time_until
        return self.deadline + self.late.days * _DAY

    @property
    def is_late_in_grace(self) -> bool:
        """Whether the late period ends no later than the grace period, which makes no sense. Raises OverflowError if
        either ends after the calendar does.
        """
        end, closes = self.on_time_until, self.closes
        return self.late is not None and end is not None and closes is not None and end >= closes

    def closed(self, now: datetime) -> bool:
        """Whether nothing is accepted any more at the moment `now`."""
        return (closes := self.closes) is not None and now > closes

    @property
    def freezes(self) -> datetime | None:
        """The moment after which new results are not shown until the problem is closed; None if all are shown."""
        return None if self.deadline is None or self.freeze is None else self.deadline - length(self.freeze)

    def frozen(self, now: datetime) -> datetime | None:
        """At the moment `now`: the moment after which no results are shown; None if all are shown."""
        freezes = self.freezes
        return freezes if freezes is not None and freezes < now and not self.closed(now) else None

    def delay(self, moment: datetime) -> Delay:
        """How late a submission at `moment` is; the result has the moment in the deadline's time zone."""
        if self.deadline is None or (end := self.on_time_until) is None:
            return Delay(moment, 0, 1.0)
        moment = moment.astimezone(self.deadline.tzinfo)
        if moment <= end:
            return Delay(moment, 0, 1.0)
        days = -((self.deadline - moment) // _DAY)  # each day begun counts
        if self.late is None or self.closed(moment):
            return Delay(moment, days, None)
        return Delay(moment, days, round(max(0.0, 1 - days * self.late.penalty_per_day), 6))

    @property
    def schedule(self) -> str:
        """The schedule in words that do not depend on the current time; empty without a deadline."""
        if self.deadline is None:
            return ""
        grace = f" with {self.grace} of grace" if self.grace else ""
        frozen = f"; the board is frozen from {shown(freezes)} until it closes" if (freezes := self.freezes) else ""
        return f"until {shown(self.deadline)}{grace}" + (f"; {self._late}" if self.late else "") + frozen

    def schedule_at(self, now: datetime) -> str:
        """The state at the moment `now` in words: on time, in grace, late (and until when), or closed; or ""."""
        if self.deadline is None or (end := self.on_time_until) is None or (closes := self.closes) is None:
            return ""
        if now > closes:
            return f"closed since {shown(closes)}"
        if now > end:
            return self._late
        return f"until {shown(self.deadline)}" + (f", in grace until {shown(end)}" if now > self.deadline else "")

    @property
    def _late(self) -> str:
        if self.late is None or (closes := self.closes) is None:
            return ""
        penalty = self.late.penalty_per_day
        cost = f"{100 * penalty:g} % off for each day begun" if penalty else "at no cost"
        return f"late until {shown(closes)}, {cost}"


def shown(moment: datetime) -> str:
    """A moment of a schedule in its own time zone, followed by the offset from UTC unless it is zero.

    All texts for people use this form.
    """
    text = moment.isoformat(" ", "minutes")
    return f"{text[:16]} UTC{text[16:].removesuffix('+00:00')}"
