"""The trusted process: it draws seeds, makes inputs, keeps the expected outputs and the clock, compares, and decides.

`check` grades for correctness, `grade` also for time. Callers that grade many submissions use `Grader`, which can start
the sandboxes of the next grading early. Importing this package is cheap: torch is imported while the sandbox boots.
"""

from __future__ import annotations

from harness.judge.grader import Grader
from harness.judge.setup import Progress, Setup
from harness.verdict import Check, Verdict

__all__ = ["Grader", "Progress", "Setup", "check", "grade"]


def check(setup: Setup) -> Check:
    """Build a submission and run all test cases.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    with Grader(setup) as grader:
        return grader.check()


def grade(setup: Setup) -> Verdict:
    """Build a submission, run all test cases, and time all benchmark cases, in alternation with the baselines.

    Waits for other gradings on the device.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    with Grader(setup) as grader:
        return grader.grade()
