"""The messages between a dispatcher and a worker: one JSON document a line. Both sides are trusted.

A worker on another machine gets nothing but these bytes: no pickled objects and no paths, except for a problem that the
dispatcher's own machine names by its directory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from harness import errors
from harness.errors import HarnessError, KernelmarkError, UsageError
from harness.judge import Progress
from harness.judge.setup import ignore
from harness.kinds import Effort
from harness.submission import Submission
from harness.verdict import Check, Verdict
from kernelmark.project.settings import DeviceChoice, SandboxChoice
from kernelmark.text.terminal import unexpected

AHEAD = 4
"""How many jobs a worker takes beyond its slots, so that their sandboxes start while others are graded."""


class WorkerLost(Exception):
    """A worker ended, or its machine was lost, before it answered."""


class WorkerAway(WorkerLost):
    """It was lost for a reason that is no job's: it did not start, or its machine was lost."""


class Message(BaseModel):
    """The base of all messages: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def line(self) -> bytes:
        """The document with its newline."""
        return self.model_dump_json(exclude_none=True).encode() + b"\n"


class JobRequest(Message):
    """One job for a worker."""

    run: str
    """The id of the verdict, drawn by the dispatcher."""
    problem: str
    """A slug of the worker's project, or a directory."""
    problem_sha256: str
    """The hash of the problem as the dispatcher read it; a worker that reads another one refuses the job."""
    final: bool = False
    """Whether the problem has its final tests; the dispatcher decides, by its clock."""
    submission: Submission
    effort: Effort
    baselines: tuple[str, ...]
    device: DeviceChoice
    sandbox: SandboxChoice
    timed: bool = True
    """Whether to time it after the tests."""
    only: tuple[str, ...] = ()
    """As in `harness.judge.Setup`, for a job that is not timed."""
    fail_fast: bool = False
    """As in `harness.judge.Setup`, for a job that is not timed."""
    hidden: bool = True
    """As in `harness.judge.Setup`."""
    progress: bool = False
    """Whether each step is reported."""


class JobCancel(Message):
    """Nobody waits for a job any more: its worker ends the sandboxes, and then answers that the job has failed."""

    cancelled: str
    """The job's run."""


class WorkerReady(Message):
    """A worker's first message: it can grade."""

    device: str
    """The name of its device."""
    slots: int
    """How many jobs it grades at a time."""


class JobProgress(Message):
    """A step of a job whose request asks for progress."""

    run: str
    step: Progress


class JobAnswer(Message):
    """The result of a job: a verdict, a check, or an error."""

    run: str
    verdict: Verdict | None = None
    check: Check | None = None
    error: str = ""
    """What went wrong."""
    where: str = ""
    """Where it went wrong, if the error is a `UsageError`."""
    remedy: str = ""
    error_class: str = ""
    """The name of the error's class in `harness.errors`."""

    @classmethod
    def failed(cls, run: str, error: Exception) -> JobAnswer:
        """The answer for a job that raised this error. The traceback of an unexpected error is printed."""
        kind = type(error).__name__
        if isinstance(error, UsageError):
            return cls(run=run, where=error.where, error=error.what, remedy=error.remedy, error_class=kind)
        if isinstance(error, HarnessError):
            return cls(run=run, error=error.what, remedy=error.remedy, error_class=kind)
        if isinstance(error, WorkerLost):
            return cls(run=run, error=str(error), error_class=kind)
        return cls(run=run, error=unexpected(error), error_class=HarnessError.__name__)

    def failure(self) -> KernelmarkError | None:
        """The error, if there is one, in the class that it had in the worker."""
        if not self.error:
            return None
        kind: type[KernelmarkError] = getattr(errors, self.error_class, HarnessError)
        subject = (self.where,) if issubclass(kind, UsageError) else ()
        return kind(*subject, self.error, self.remedy)


OnStep = Callable[[Progress], None]


class WorkerHandle(Protocol):
    """A judge of a device, from the dispatcher's side."""

    slots: int
    """How many jobs it works on at a time."""
    device: str
    """The name of its device; empty before it was up for the first time."""
    gpu: str
    """An id of its GPU, which no other GPU of the fleet has; empty if it grades on a CPU."""

    def submit(self, request: JobRequest, on_step: OnStep = ignore) -> Future[JobAnswer]:
        """Hand over a job. The future raises `WorkerLost`, or is cancelled, if the worker is lost before it answers.

        `on_step` gets each step of a job whose request asks for progress, in a thread that must not wait.
        """
        ...

    def cancel(self, run: str) -> None:
        """End this job, which still gets an answer; does nothing if the worker does not have it."""
        ...
