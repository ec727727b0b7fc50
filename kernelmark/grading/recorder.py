"""Decides, before a grading spends its time, whether its verdict may and can be recorded, and records it. Trusted.

The schedule of the problem, the ledger, the archive and the limits a day are asked here and nowhere else.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from harness.errors import HarnessError, UsageError
from harness.files.outside import real
from harness.verdict import Verdict
from kernelmark.grading import usual
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.problems import identity, refuse_without_project
from kernelmark.record import publishing, recording, records
from kernelmark.record.allowance import Allowance
from kernelmark.record.lateness import Remark, remark_on
from kernelmark.record.records import ledger, whole
from leaderboard.record.archive import refuse_if_unwritable
from leaderboard.standings.ranking import Table


def recorded(job: PreparedJob, run: str) -> Verdict | None:
    """The verdict of this run, if the ledger of the job's problem has it.

    Raises:
        LedgerError: the ledger is broken.
    """
    return ledger(whole(job.settings), job.problem.slug).find(run)


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


def admit(
    job: PreparedJob,
    late: str | None = None,
    allowance: Allowance | None = None,
    *,
    handed_in: datetime | None = None,
    exempt: bool = False,
) -> Remark | None:
    """Check that the problem is open and the project's own, not another one of the same name, that the ledger and the
    archive can be written, and that the author is within the limits a day, unless the job is `exempt` from them.

    `late` names the organizer who admits it although the problem is closed. `handed_in` is when it was submitted, if
    not now. `allowance` is that of the command, if it admits several. Returns what is to be recorded with the verdict;
    None if there is nothing to remark.

    Raises:
        UsageError: the problem is closed, or is not the project's, a limit is reached, or nothing can be recorded
            there.
        LedgerError: the ledger is broken.
    """
    settings, slug = job.settings, job.problem.slug
    if settings.effort == "screen":
        what = "times one benchmark case, and so cannot rank"
        raise UsageError("effort screen", what, "grade without recording, or with the effort quick")
    _refuse_another_problem(job)
    refuse_without_project(settings)
    records.ledger(settings, slug).refuse_if_broken()
    refuse_if_unwritable(settings.locate("archive"), slug, job.submission)
    remark = _remark(job, late, handed_in or job.moment)
    if not exempt:
        (allowance or Allowance(settings)).take(job.submission.author, lambda: usual_s(job))
    return remark


def usual_s(job: PreparedJob) -> float | None:
    """How long such a grading took before, in seconds, if the project's ledger tells."""
    return usual.usual_s(job.settings, job.problem.slug, job.device, job.submission.language)


def left_today(job: PreparedJob) -> str:
    """What the limits a day leave to the author, in words; empty if there are none, or a ledger cannot be read."""
    with suppress(HarnessError):  # what reads the ledger next reports it
        return Allowance(job.settings).left(job.submission.author)
    return ""


def _refuse_another_problem(job: PreparedJob) -> None:
    own, given = job.settings.locate("problems") / job.problem.slug, job.problem.directory
    remedy = "name the problem by its slug, or grade without recording (--no-record)"
    if (own / "problem.toml").is_file() and real(own) != real(given):
        raise UsageError(str(given), f"is not the project's problem of this name, {own}", remedy)
    if identity(job.settings, given, job.moment) != job.problem.sha256:
        raise UsageError(str(given), "was loaded without the project's private cases, or has changed since", remedy)


def _remark(job: PreparedJob, late: str | None, handed_in: datetime) -> Remark | None:
    """What the schedule says of a submission that was handed in at that moment; raises as `admit`."""
    problem, annotator = job.problem, job.settings.author_or_default
    remark = remark_on(problem, problem.slug, handed_in, job.moment, annotator, late)
    if remark is not None and late is not None:
        try:
            remark.event("0" * 16)  # validates the name before the grading spends its time
        except ValueError as error:
            raise UsageError("--late", f"{late!r} is not a valid name", "give one of up to 100 characters") from error
    return remark
