"""The rule for what is handed in after a deadline: refused, or recorded with a remark that says so. Trusted; pure.

A command asks it before it grades (`grading.recorder`), and a server when it receives a submission.
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
"""The actor of the events that follow from a problem's own `late`, without an organizer."""


@dataclass(frozen=True)
class Remark:
    """What is recorded with a verdict about its submission, and who says so.

    With the action `late` or `disqualify` the run does not rank; `annotate` explains why a run that was graded late
    does.
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
    """What is to be recorded with the verdict of a submission; None if there is nothing to remark.

    Args:
        graded: from when its grading is; a submission that was handed in on time and graded late is annotated.
        annotator: who says so.
        late: the organizer who admits it although the problem is closed.

    Raises:
        UsageError: the problem was closed when it was handed in.
    """
    delay = schedule.delay(handed_in)
    if not schedule.delay(graded).days:
        return None
    assert schedule.deadline is not None  # else nothing is late
    when, deadline = shown(delay.handed_in), shown(schedule.deadline)
    if not delay.days:
        return Remark("annotate", annotator(), f"graded after the deadline, but handed in on time, {when}")
    if late is None and schedule.closed(handed_in):
        what = f"takes no more submissions, {schedule.schedule_at(handed_in)}"
        remedy = "record it as late (--late NAME), or grade without recording (--no-record)"
        raise UsageError(f"problem {slug}", what, remedy)
    return Remark("late", POLICY if late is None else late, f"{delay}: handed in {when}, deadline {deadline}")
