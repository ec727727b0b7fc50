"""The rule for submissions after a deadline: they are refused, or recorded with a remark. Trusted; pure.

A command applies it before it grades (`grading.recorder`), and a server when it receives a submission.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from harness.errors import UsageError
from harness.problem.schedule import Schedule, shown
from leaderboard.record.moderation import Moderation

POLICY = "late policy"
"""The actor of events that follow from a problem's own `late` rule, without an organizer."""


@dataclass(frozen=True)
class Remark:
    """A remark on a submission that is recorded with its verdict, and its actor.

    With the action `late` or `disqualify` the run does not rank; `annotate` explains why a run that was graded late
    ranks.
    """

    action: Literal["late", "annotate", "disqualify"]
    actor: str
    reason: str

    def event(self, run: str) -> Moderation:
        """The moderation event about this run.

        Raises:
            ValueError: the actor's name is not valid.
        """
        now = datetime.now(UTC)
        return Moderation(run=run, action=self.action, actor=self.actor, reason=self.reason, created_at=now)


def remark_on(
    schedule: Schedule,
    slug: str,
    handed_in: datetime,
    graded: datetime,
    annotator: Callable[[], str],
    late: str | None = None,
) -> Remark | None:
    """The remark to record with the verdict on a submission, or None.

    Args:
        graded: when it is graded; a submission that was handed in on time and is graded late gets an annotation.
        annotator: returns the actor of an annotation.
        late: the organizer who admits it although the problem is closed.

    Raises:
        UsageError: the problem was closed when it was handed in.
    """
    delay = schedule.delay(handed_in)
    if not schedule.delay(graded).days:
        return None
    assert schedule.deadline is not None  # otherwise nothing is late
    when, deadline = shown(delay.handed_in), shown(schedule.deadline)
    if not delay.days:
        return Remark("annotate", annotator(), f"graded after the deadline, but handed in on time, {when}")
    if late is None and schedule.closed(handed_in):
        what = f"takes no more submissions, {schedule.schedule_at(handed_in)}"
        remedy = "record it as late (--late NAME), or grade without recording (--no-record)"
        raise UsageError(f"problem {slug}", what, remedy)
    return Remark("late", POLICY if late is None else late, f"{delay}: handed in {when}, deadline {deadline}")
