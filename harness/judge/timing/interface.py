"""What the two ways of timing share: the cases, and the points of a grading at which each is called."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Builds, Handover, Session, SubmissionFault
from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import BenchmarkResult, DeviceKind, Doubt, Stage
from harness.verdict import Timing as Kind
from harness.wire import replies


@dataclass(frozen=True)
class Benchmarks:
    """The cases to time, and what timing them needs."""

    problem: Problem
    device: DeviceKind
    cases: Sequence[GradedCase]
    builds: Builds
    on_stage: Callable[[Stage, int, int, str], None]
    on_recorded: Callable[[Session], None]
    """Called when all cases are recorded: nothing more is asked of the session for timing."""

    def enter(self, stage: Stage, done: int, label: str) -> None:
        """Report that case `done` is about to begin in a stage."""
        self.on_stage(stage, done, len(self.cases), label)

    def hand_over(self, session: Session, baseline: Submission) -> replies.Built:
        """Let a session's runner build a baseline.

        Raises:
            SubmissionFault: it cannot be built.
        """
        problem, cases = self.problem.of_baseline(baseline.stem), [case.of_baseline(baseline) for case in self.cases]
        handover = Handover.of(problem, baseline, [case.resolved for case in cases], self.device)
        return session.hand_over(self.builds.added(handover), self.problem.limits.build_s)

    @contextlib.contextmanager
    def of(self, case: GradedCase) -> Iterator[None]:
        """Add the case's name to a fault."""
        try:
            yield
        except SubmissionFault as fault:
            raise SubmissionFault(fault.outcome, f"benchmark {case.name}: {fault.message}", fault.traceback) from None


class Faulty(Protocol):
    """What a verdict needs of a failed baseline."""

    name: str
    submission: Submission
    fault: str | None


class Timing(Protocol):
    """A way of timing. `timed` grows as cases are done, so that a later fault loses none of them."""

    kind: Kind
    timed: list[BenchmarkResult]

    @property
    def baselines(self) -> Sequence[Faulty]: ...
    @property
    def doubts(self) -> tuple[Doubt, ...]: ...
    def before_the_submission(self, session: Session, benchmarks: Benchmarks) -> None: ...
    def beside_the_runner(self, session: Session, benchmarks: Benchmarks) -> int: ...
    def after_the_runner(self, benchmarks: Benchmarks) -> int: ...
