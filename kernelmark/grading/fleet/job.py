"""What a fleet is given, and what it gives back."""

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
    """The language of a submission that is given as source."""
    beside: ExtraFiles = ()
    """As for `kernelmark.grade`: the files that the submission includes or imports."""
    key: object = None
    """Anything of the caller's: it comes back with the result."""
    timeout: float | None = None
    """Seconds after which it is ended, from the moment that the fleet takes it; None: only the problem's limits count.

    What it waits for other jobs counts, so that this says nothing about the submission: its result is a
    `JobTimeoutError`.
    """
    run: str | None = None
    """The id of the verdict, 16 hexadecimal digits; None: drawn. A recorded run is not graded again: a program that was
    killed and gives its jobs the same ids again gets their verdicts from the ledger.
    """


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What became of a job. There is a verdict or an error; both only if the verdict could not be recorded."""

    job: Job
    verdict: Verdict | None = None
    check: Check | None = None
    """The result of a job that was only checked, in place of a verdict."""
    error: KernelmarkError | None = None
    """A `UsageError` is the job's own fault, a `HarnessError` is ours."""
    seconds: float = 0.0
    """The time since the fleet took the job."""
    device: str = ""
    """The name of the worker's device."""
    duplicate: bool = False
    """Whether the same source was graded for another job, and this is a copy of its verdict."""
    tries: int = 0
    """How many workers were given the job, more than one if some were lost; 0 if none was, as for a copy."""
    recorded_in: Settings | None = field(default=None, repr=False, compare=False)
    """The settings of the project that recorded it; None if it was not recorded."""

    @property
    def table(self) -> Table | None:
        """The table that a recorded, accepted verdict belongs to, as the ledger is now."""
        if self.recorded_in is None or self.verdict is None:
            return None
        return table_of(tables(self.recorded_in, self.verdict.problem.slug), self.verdict)


def prepared(settings: Settings, job: Job) -> PreparedJob:
    """Read a job, as `PreparedJob.prepare`.

    Raises:
        UsageError: as there, or it holds something else than it should.
    """
    for name, kind in (("problem", Problem), ("submission", Submission)):
        if not isinstance(given := getattr(job, name), str | Path | kind):
            what = f"is of the type {type(given).__name__}"
            raise UsageError(f"the job's {name}", what, f"give a str, a Path or a {kind.__name__}")
    if job.timeout is not None and not job.timeout > 0:
        raise UsageError("the job's timeout", f"{job.timeout} is not a time", "give seconds, or None for no timeout")
    return PreparedJob.prepare(
        settings, job.problem, job.submission, author=job.author, language=job.language, beside=job.beside
    )
