"""Records a job's verdict in its project, with what its admission remarked, and writes the board. Trusted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from harness.verdict import Verdict
from kernelmark.grading.setup import PreparedJob
from kernelmark.record import publishing, recording
from kernelmark.record.records import ledger
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import Table

POLICY = "late policy"
"""The actor of the events that follow from a problem's own `late`, without an organizer."""


@dataclass(frozen=True)
class Remark:
    """What is recorded with a verdict about when its submission was handed in, and who says so.

    With the action `late` the run does not rank; `annotate` explains why a run that was graded late does.
    """

    action: Literal["late", "annotate"]
    actor: str
    reason: str

    def event(self, run: str) -> Moderation:
        """The moderation event about this run.

        Raises:
            ValueError: the actor's name is not valid.
        """
        now = datetime.now(UTC)
        return Moderation(run=run, action=self.action, actor=self.actor, reason=self.reason, created_at=now)


def recorded(job: PreparedJob, run: str) -> Verdict | None:
    """The verdict of this run, if the ledger of the job's problem has it.

    Raises:
        LedgerError: the ledger is broken.
    """
    return ledger(job.settings, job.problem.slug).find(run)


def record(job: PreparedJob, verdict: Verdict, remark: Remark | None = None, *, exempt: bool = False) -> None:
    """Record the verdict in the project, with what `admit` returned; `publish` writes the board.

    One that is `exempt` does not count towards its author's limits a day.

    Raises:
        HarnessError: as for `kernelmark.record.recording.record`.
    """
    event = remark.event(verdict.run) if remark else None
    recording.record(job.settings, job.submission, verdict, event, exempt=exempt)


def publish(job: PreparedJob, verdict: Verdict) -> Table | None:
    """Write the board after a verdict was recorded; returns the table of an accepted one.

    Raises:
        HarnessError: as for `kernelmark.record.publishing.publish`.
    """
    return publishing.table_of(publishing.publish(job.settings, job.problem.slug), verdict)
