"""The trusted process: draws seeds, makes inputs, holds the expected outputs and the clock, compares, decides.

`check` grades for correctness, `grade` for time as well; `Grader` is for those who grade many, and start the sandboxes
of the next grading early. Importing this package is cheap; the sandbox starts first and boots while torch is imported
here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from harness.judge.grader import Grader
from harness.judge.progress import Progress, ignore
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Effort, Verdict
from harness.verdict.roofline import Calibration

if TYPE_CHECKING:
    from harness.judge.correctness.cases import OnFailure

__all__ = ["Grader", "Progress", "check", "grade"]


def check(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    on_progress: Callable[[Progress], None] = ignore,
    on_failure: OnFailure | None = None,
    only: Collection[str] = (),
    fail_fast: bool = False,
) -> Check:
    """Build a submission and run all test cases; `on_failure` gets the tensors of each that fails and is not hidden.

    `only` names tests that are run alone, without the hidden ones; if they are right, the outcome is `incomplete`.
    `fail_fast` ends at the first that fails.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    with Grader(
        problem,
        submission,
        provider=provider,
        device=device,
        on_progress=on_progress,
        on_failure=on_failure,
        only=only,
        fail_fast=fail_fast,
    ) as grader:
        return grader.check()


def grade(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    effort: Effort = "default",
    baselines: Sequence[Submission] = (),
    calibrations: Sequence[Calibration] = (),
    on_progress: Callable[[Progress], None] = ignore,
) -> Verdict:
    """Build a submission, run all test cases, and time all benchmark cases, in alternation with the baselines.

    Each baseline has its own sandbox, which starts together with the submission's. A time that beats this device's
    calibration is rejected. Waits for other gradings on the device.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    with Grader(
        problem,
        submission,
        provider=provider,
        device=device,
        effort=effort,
        baselines=baselines,
        calibrations=calibrations,
        on_progress=on_progress,
    ) as grader:
        return grader.grade()
