"""Which of the problem's other values a benchmark is tried on next, and what is said if its calls are wrong there.

A benchmark is timed on its usual values. Besides, untimed calls of it get the values that the tests hold: large ones,
masks, ties. Which, and at which moment, is drawn, so that no call can know that it is not timed. Trusted.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence

from harness.compare import describe
from harness.compare.budget import CEILING
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.cases import check_batch, first_wrong
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.truth import Truth
from harness.judge.session import SubmissionFault
from harness.problem import ResolvedCase
from harness.verdict import Outcome, OutputCheck

_FAR = 16
"""Times the budget. In one of 2,000 small tensors of Adam, whose sum cancelled, an honest kernel had 3.7 times."""


class DealtValues:
    """Deals the values of tests to the benchmarks of one grading: those first that fewer benchmarks have had."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def of(self, case: GradedCase) -> Callable[[int], list[ResolvedCase]]:
        """A function that deals up to so many values to a benchmark, each once; fewer when no more are left."""
        left = list(case.other_values)

        def deal(most: int) -> list[ResolvedCase]:
            left.sort(key=lambda case: (self._times[case.name], secrets.randbits(32)))
            dealt, left[:] = left[:most], left[most:]
            self._times.update(case.name for case in dealt)
            return dealt

        return deal


def fault_with_values(values: Sequence[ResolvedCase], outcome: Outcome, message: str) -> SubmissionFault:
    """The fault of calls that held them; where one is of a hidden test, only its kind is named."""
    if len(values) > 1:
        whose = "the problem's tests"
    else:
        whose = "a hidden test" if values[0].hidden else f"test {values[0].name}"
    shown = outcome.replace("_", " ") if any(case.hidden for case in values) else message
    return SubmissionFault(outcome, f"with the values of {whose}: {shown}")


def check_values(batch: Batch, truth: Truth, calls: Sequence[int]) -> None:
    """Check the calls of a batch of other values, of which a snapshot was taken.

    A test's values were chosen for its own sizes. At those of a benchmark a sum may cancel, or the reference be so far
    off itself that no error tells right from wrong. So only what is far beyond the budget is held against a submission:
    its precision is judged by the timed calls, and by the tests.

    Raises:
        SubmissionFault: an output is wrong.
    """
    if not first_wrong(batch, truth, calls):
        return
    # Those of visible tests first, whose messages say more.
    for k in sorted(calls, key=lambda k: bool((of := batch.values_of(k)) and of.hidden)):
        values = batch.values_of(k)
        checks = check_batch(batch, truth, [k], measures=False)
        wrong = next((check for check in checks if _is_wrong(check, truth)), None)
        if values and wrong:
            raise fault_with_values([values], Outcome.WRONG_ANSWER, describe(wrong))


def _is_wrong(check: OutputCheck, truth: Truth) -> bool:
    """Whether an output is far off by a metric in which the reference itself is right."""
    by_budget = truth.case.tolerance.rtol is None and not truth.reference.compares
    budgets = [budget for budget in (check.max_error, check.rms_error) if budget is not None]
    if check.correct or not (by_budget and budgets):
        return not check.correct
    found = check.mismatch
    assert found is not None
    misplaced = (found.nan_got, found.inf_got) != (found.nan_expected, found.inf_expected)
    return misplaced or any(
        budget.factor * budget.reference_error <= CEILING and budget.error > min(_FAR * budget.allowed, CEILING)
        for budget in budgets
    )
