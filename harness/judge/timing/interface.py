"""The interface between a grading and its way of timing: `TimingMethod`, and the cases to time. Trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from harness.errors import DeviceError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import BuildRequest, Builds, Session, SubmissionFault
from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import BenchmarkResult, DeviceKind, Doubt, Stage, Timing
from harness.wire import replies

NO_MEMORY = (DeviceError, torch.OutOfMemoryError)


def described(error: Exception) -> str:
    """The text of an error for a verdict. PyTorch's own text lists every process on the GPU."""
    return "the device had too little free memory" if isinstance(error, torch.OutOfMemoryError) else str(error)


@dataclass(frozen=True)
class Benchmarks:
    """The cases to time, and what is needed to time them."""

    problem: Problem
    device: DeviceKind
    cases: Sequence[GradedCase]
    builds: Builds
    on_stage: Callable[[Stage, int, int, str], None]
    on_recorded: Callable[[Session], None]
    """Called when all cases are recorded, and timing no longer needs the session."""

    def enter(self, stage: Stage, done: int, label: str) -> None:
        """Report that case `done` is about to begin in a stage."""
        self.on_stage(stage, done, len(self.cases), label)

    def build(self, session: Session, baseline: Submission) -> replies.Built:
        """Let a session's runner build a baseline.

        Raises:
            SubmissionFault: the baseline cannot be built.
        """
        problem, cases = self.problem.of_baseline(baseline.stem), [case.of_baseline(baseline) for case in self.cases]
        request = BuildRequest.of(problem, baseline, [case.resolved for case in cases], self.device)
        return session.build(self.builds.with_objects(request), self.problem.limits.build_s)

    @contextlib.contextmanager
    def of(self, case: GradedCase) -> Iterator[None]:
        """Add the case's name to a fault."""
        try:
            yield
        except SubmissionFault as fault:
            raise SubmissionFault(fault.outcome, f"benchmark {case.name}: {fault.message}", fault.traceback) from None


class TimedBaseline(Protocol):
    """A baseline in either way of timing; `fault` says why it failed."""

    name: str
    submission: Submission
    fault: str | None


class TimingMethod(Protocol):
    """A way of timing.

    `timed` is extended after each case, so that a later fault loses no result. The methods are called in the order in
    which they are listed; the last two return ns: the first, how long the device was waited for, the second, how long
    the timing took.
    """

    kind: Timing
    timed: list[BenchmarkResult]

    @property
    def baselines(self) -> Sequence[TimedBaseline]: ...
    @property
    def doubts(self) -> tuple[Doubt, ...]: ...
    def measure_before_build(self, session: Session, benchmarks: Benchmarks) -> None: ...
    def time_with_runner(self, session: Session, benchmarks: Benchmarks) -> int: ...
    def time_without_runner(self, benchmarks: Benchmarks) -> int: ...
