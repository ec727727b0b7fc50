"""The trusted process: draws seeds, makes inputs, holds the expected outputs and the clock, compares, decides.

`check` grades for correctness, `grade` for time as well. Importing this package is light; the sandbox is started first
and boots while torch is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.arena.context import warm_context
from harness.judge.session import Session
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Stage, Verdict

__all__ = ["Progress", "check", "grade"]


@dataclass(frozen=True)
class Progress:
    """Where a grading stands: item `done` of `total` of a stage is about to begin."""

    stage: Stage
    done: int
    total: int
    label: str


def _ignore(_: Progress) -> None:
    pass


def check(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    on_progress: Callable[[Progress], None] = _ignore,
) -> Check:
    """Build a submission and run all test cases.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    warm_context(device)
    with Session(provider, device, problem.limits) as session:
        from harness.judge.grading import Grading

        return Grading(problem, submission, provider, device, on_progress).check(session)


def grade(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    on_progress: Callable[[Progress], None] = _ignore,
) -> Verdict:
    """Build a submission, run all test cases, and time all benchmark cases.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    warm_context(device)
    with Session(provider, device, problem.limits) as session:
        from harness.judge.grading import Grading

        return Grading(problem, submission, provider, device, on_progress).grade(session)
