"""The trusted process: draws seeds, makes inputs, holds the expected outputs and the clock, compares, decides.

`check` grades for correctness, `grade` for time as well. Importing this package is light; the sandbox is started first
and boots while torch is imported here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.arena import give_back
from harness.arena.context import warm_context
from harness.judge.session import Session
from harness.judge.turn import take_turn
from harness.problem import Problem
from harness.roofline import Calibration
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Effort, Stage, Verdict

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
    with contextlib.ExitStack() as stack:
        stack.callback(give_back, device)
        session = stack.enter_context(Session(provider, device, problem.limits))
        from harness.judge.grading import Grading

        return Grading(problem, submission, provider, device, on_progress).check(session)


def grade(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    effort: Effort = "default",
    baselines: Sequence[Submission] = (),
    calibrations: Sequence[Calibration] = (),
    on_progress: Callable[[Progress], None] = _ignore,
) -> Verdict:
    """Build a submission, run all test cases, and time all benchmark cases, in alternation with the baselines.

    Each baseline has a sandbox of its own, which starts now, together with the submission's. Of the calibrations
    that of this device counts: what beats it is rejected. This waits for other gradings on the device.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    warm_context(device)
    with contextlib.ExitStack() as stack:
        name = "GPU" if device == "cuda" else "CPU"
        waiting = Progress(Stage.BUILD, 0, 0, f"waits: another grading is on this {name}")
        stack.enter_context(take_turn(device, lambda: on_progress(waiting)))
        stack.callback(give_back, device)
        session = stack.enter_context(Session(provider, device, problem.limits))
        beside = [(each, stack.enter_context(Session(provider, device, problem.limits))) for each in baselines]
        from harness.judge.baseline import Baseline
        from harness.judge.grading import Grading

        paired = [Baseline(each, own, problem, device) for each, own in beside]
        return Grading(problem, submission, provider, device, on_progress, effort, paired, calibrations).grade(session)
