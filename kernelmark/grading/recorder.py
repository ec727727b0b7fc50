"""Checks before a grading that its verdict may and can be recorded, and records it after. Trusted.

All checks of the problem's schedule, the ledger, the archive and the daily limits are here.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from statistics import median

from harness.errors import HarnessError, LedgerError, UsageError
from harness.files.outside import real
from harness.verdict import Outcome, Verdict
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.choice import device_name
from kernelmark.project.problems import identity, refuse_without_project
from kernelmark.record import publishing, recording, records
from kernelmark.record.allowance import Allowance
from kernelmark.record.lateness import Remark, remark_on
from kernelmark.record.records import ledger, whole
from leaderboard.record.archive import refuse_if_unwritable
from leaderboard.standings.ranking import Table

_NEWEST, _LOOKED_AT = 5, 200  # of how many gradings `usual_s` is the median, and among how many it looks for them


def recorded(job: PreparedJob, run: str) -> Verdict | None:
    """The verdict of this run in the ledger of the job's problem, or None.

    Raises:
        LedgerError: the ledger is broken.
    """
    return ledger(whole(job.settings), job.problem.slug).find(run)


def record(job: PreparedJob, verdict: Verdict, remark: Remark | None = None, *, exempt: bool = False) -> None:
    """Record the verdict in the project, with the remark that `admit` returned; `publish` writes the board.

    A verdict that is `exempt` does not count towards its author's daily limits.

    Raises:
        HarnessError: as for `kernelmark.record.recording.record`.
    """
    event = remark.event(verdict.run) if remark else None
    recording.record(job.settings, job.submission, verdict, event, exempt=exempt)


def publish(job: PreparedJob, verdict: Verdict) -> Table | None:
    """Write the board after a verdict was recorded; returns the table of an accepted verdict.

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
    """Check that the verdict on a job may and can be recorded; returns a remark to record with it, if any.

    The problem must be open and the project's own, the ledger and the archive must be writable, and the author must be
    within the daily limits.

    Args:
        late: the organizer who admits the job although the problem is closed.
        allowance: what is left of the daily limits, shared by all jobs of a command; None: read for this job.
        handed_in: when it was submitted; None: when it was read.
        exempt: whether the daily limits do not apply.

    Raises:
        UsageError: one of these checks fails.
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
    """How long such a grading usually takes, in seconds, by the ledger; None if that is unknown.

    It is the median of the newest accepted gradings of this problem, language and effort on this machine's device. If
    there are none, it is that of the device of the same kind which graded last: models are never mixed.
    """
    effort, language = job.settings.effort, job.submission.language
    try:
        with ledger(job.settings, job.problem.slug).lines() as lines:
            newest = lines.newest(_LOOKED_AT, outcome=Outcome.ACCEPTED, language=language, effort=effort)
    except LedgerError:
        return None
    alike = [verdict for verdict in newest if verdict.environment.device_kind == job.device]
    names = [verdict.environment.device_name for verdict in alike]
    name = own if (own := device_name(job.device)) in names else next(iter(names), None)
    took = [verdict.duration_ns / 1e9 for verdict in alike if verdict.environment.device_name == name]
    return median(took[:_NEWEST]) if took else None


def left_today(job: PreparedJob) -> str:
    """What the daily limits leave to the author, in words; empty if there are none, or a ledger cannot be read."""
    with suppress(HarnessError):  # the next reader of the ledger reports it
        return Allowance(job.settings).left(job.submission.author)
    return ""


def _refuse_another_problem(job: PreparedJob) -> None:
    own, used = job.settings.locate("problems") / job.problem.slug, job.problem.directory
    remedy = "name the problem by its slug, or grade without recording"
    if (own / "problem.toml").is_file() and real(own) != real(used):
        raise UsageError(str(used), f"is not the project's problem of this name, {own}", remedy)
    if identity(job.settings, used, job.moment) != job.problem.sha256:
        raise UsageError(str(used), "was loaded without the project's private cases, or has changed since", remedy)


def _remark(job: PreparedJob, late: str | None, handed_in: datetime) -> Remark | None:
    """The remark on a submission of that moment by the problem's schedule; raises as `admit`."""
    problem, annotator = job.problem, job.settings.author_or_default
    remark = remark_on(problem, problem.slug, handed_in, job.moment, annotator, late)
    if remark is not None and late is not None:
        try:
            remark.event("0" * 16)  # validates the name before the grading
        except ValueError as error:
            raise UsageError("--late", f"{late!r} is not a valid name", "give one of up to 100 characters") from error
    return remark
