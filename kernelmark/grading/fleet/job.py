"""A fleet's input and output: jobs and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import KernelmarkError, UsageError
from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import Check, Verdict
from kernelmark.grading.setup import ExtraFiles, PreparedJob
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import table_of
from kernelmark.record.records import tables
from leaderboard.standings.ranking import Table


@dataclass(frozen=True, kw_only=True)
class Job:
    """One submission to grade."""

    problem: str | Path | Problem
    """As for `kernelmark.grade`."""
    submission: str | Path | Submission
    """As for `kernelmark.grade`: source (`str`), a file (`Path`), or a `Submission`."""
    author: str = "anonymous"
    language: str = "py"
    """The language, if the submission is a source."""
    beside: ExtraFiles = ()
    """As for `kernelmark.grade`: the files that the submission includes or imports."""
    key: object = None
    """Any value; it is returned with the result."""
    timeout: float | None = None
    """Seconds after which the fleet ends the job, counted from when it read it; None: only the problem's limits apply.

    The time includes waiting for other jobs, so a timeout says nothing about the submission: the result's error is a
    `JobTimeoutError`.
    """
    run: str | None = None
    """The id of the verdict, 16 hexadecimal digits; None: a random one. A recorded run is not graded again: a program
    that was killed can submit the same ids again, and gets the recorded verdicts.
    """


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The result of a job: a verdict, a check or an error; a verdict and an error if it could not be recorded."""

    job: Job
    verdict: Verdict | None = None
    check: Check | None = None
    """The result of a job without timing, in place of a verdict."""
    error: KernelmarkError | None = None
    """A `UsageError` is the job's own fault, a `HarnessError` is ours."""
    seconds: float = 0.0
    """The time since the fleet read the job."""
    device: str = ""
    """The name of the worker's device."""
    duplicate: bool = False
    """Whether this is a copy of the verdict on another job with the same source."""
    tries: int = 0
    """How many workers received the job: more than one if some were lost, 0 for a copy."""
    recorded_in: Settings | None = field(default=None, repr=False, compare=False)
    """The settings of the project that recorded it; None if it was not recorded."""

    @property
    def table(self) -> Table | None:
        """The current table of the board that a recorded, accepted verdict belongs to; else None."""
        if self.recorded_in is None or self.verdict is None:
            return None
        return table_of(tables(self.recorded_in, self.verdict.problem.slug), self.verdict)


def prepared(settings: Settings, job: Job) -> PreparedJob:
    """Read a job, as `PreparedJob.prepare`.

    Raises:
        UsageError: as there, or a field has a value of the wrong type.
    """
    if job.timeout is not None and not (isinstance(job.timeout, int | float) and job.timeout > 0):
        raise UsageError("the job's timeout", f"{job.timeout!r} is not a time", "give seconds, or None for no timeout")
    return PreparedJob.prepare(
        settings, job.problem, job.submission, author=job.author, language=job.language, beside=job.beside
    )
