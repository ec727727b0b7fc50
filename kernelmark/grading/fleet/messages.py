"""The messages between a dispatcher and a worker: one JSON document on each line. Both sides are trusted.

A worker on another machine gets only these bytes: no pickled objects, and no paths. A problem may be named by its
directory only if the worker runs on the same machine.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from pydantic import BaseModel, ConfigDict, TypeAdapter

from harness import errors
from harness.errors import HarnessError, KernelmarkError, UsageError
from harness.judge import Progress
from harness.judge.setup import ignore
from harness.kinds import Effort, SandboxChoice
from harness.submission import Submission
from harness.verdict import Check, Verdict
from kernelmark.project.settings import DeviceChoice
from kernelmark.text.terminal import unexpected

AHEAD = 4
"""How many jobs a worker accepts beyond its slots, so that their sandboxes start while others are graded."""


class WorkerLost(Exception):
    """A worker ended, or its machine was lost, before it answered."""


class WorkerAway(WorkerLost):
    """A worker was lost for a reason that no job can have caused: it did not start, or its machine was lost."""


class Message(BaseModel):
    """The base of all messages: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def line(self) -> bytes:
        """The document with its newline."""
        return self.model_dump_json(exclude_none=True).encode() + b"\n"


class JobRequest(Message):
    """One job for a worker."""

    run: str
    """The id of the verdict, chosen by the dispatcher."""
    problem: str
    """A slug of the worker's project, or a directory."""
    problem_sha256: str
    """The hash of the problem as the dispatcher read it. A worker whose problem has another hash refuses the job."""
    final: bool = False
    """Whether the problem includes its final tests; the dispatcher decides this by its clock."""
    submission: Submission
    effort: Effort
    baselines: tuple[str, ...]
    device: DeviceChoice
    sandbox: SandboxChoice
    timed: bool = True
    """Whether to time the kernel after the tests."""
    only: tuple[str, ...] = ()
    """As in `harness.judge.Setup`; only for jobs without timing."""
    fail_fast: bool = False
    """As in `harness.judge.Setup`; only for jobs without timing."""
    hidden: bool = True
    """As in `harness.judge.Setup`."""
    progress: bool = False
    """Whether each step is reported."""


class JobCancel(Message):
    """A request to cancel a job: the worker ends its sandboxes, and then answers that the job has failed."""

    cancelled: str
    """The job's run."""


class WorkerReady(Message):
    """A worker's first message: it is ready for jobs."""

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
    """The subject of the error, if it is a `UsageError`."""
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
        """The error, if there is one, as an instance of the class that it had in the worker."""
        if not self.error:
            return None
        kind: type[KernelmarkError] = getattr(errors, self.error_class, HarnessError)
        subject = (self.where,) if issubclass(kind, UsageError) else ()
        return kind(*subject, self.error, self.remedy)


REPLY: TypeAdapter[JobAnswer | JobProgress] = TypeAdapter(JobAnswer | JobProgress)
"""Parses what a worker sends about a job."""
OnStep = Callable[[Progress], None]


class WorkerHandle(Protocol):
    """A worker, as the dispatcher sees it."""

    slots: int
    """How many jobs it grades at a time."""
    device: str
    """The name of its device; empty until it has started for the first time."""
    gpu: str
    """An id of its GPU, unique in the fleet; empty if it grades on a CPU."""

    def submit(self, request: JobRequest, on_step: OnStep = ignore) -> Future[JobAnswer]:
        """Send a job. The future raises `WorkerLost`, or is cancelled, if the worker is lost before it answers.

        If the request wants progress, `on_step` is called with each step, in a thread that it must not block.
        """
        ...

    def cancel(self, run: str) -> None:
        """Ask the worker to end this job, which still gets an answer; does nothing if the worker does not have it."""
        ...
