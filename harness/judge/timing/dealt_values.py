"""Tries benchmarks on the values of the problem's tests, and reports calls that are wrong there. Trusted.

A benchmark is timed on its usual values. Between the timed calls it gets untimed calls with the values of tests: large
numbers, masks, ties. The values and the moments are random, so that no call can know that it is not timed.
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
"""Multiples of the error budget. In one of 2,000 small tensors of Adam, with cancellation, an honest kernel had 3.7."""


class DealtValues:
    """Deals the values of tests to the benchmarks of one grading, starting with those that were dealt the least."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def of(self, case: GradedCase) -> Callable[[int], list[ResolvedCase]]:
        """A function that deals up to `most` values to a benchmark. It deals each only once, so it may return fewer."""
        left = list(case.other_values)

        def deal(most: int) -> list[ResolvedCase]:
            left.sort(key=lambda case: (self._times[case.name], secrets.randbits(32)))
            dealt, left[:] = left[:most], left[most:]
            self._times.update(case.name for case in dealt)
            return dealt

        return deal


def fault_with_values(values: Sequence[ResolvedCase], outcome: Outcome, message: str) -> SubmissionFault:
    """The fault of calls that had these values. If one belongs to a hidden test, the message names only the outcome."""
    if len(values) > 1:
        whose = "the problem's tests"
    else:
        whose = "a hidden test" if values[0].hidden else f"test {values[0].name}"
    shown = outcome.replace("_", " ") if any(case.hidden for case in values) else message
    return SubmissionFault(outcome, f"with the values of {whose}: {shown}")


def check_values(batch: Batch, truth: Truth, calls: Sequence[int]) -> None:
    """Check the calls of a batch with the values of tests, after its snapshot was taken.

    The values of a test were chosen for its own sizes. At the sizes of a benchmark a sum may cancel, or the reference
    itself may be so inaccurate that its error says nothing. So only errors far beyond the budget count as wrong here;
    the timed calls and the tests judge the precision.

    Raises:
        SubmissionFault: an output is wrong.
    """
    if not first_wrong(batch, truth, calls):
        return
    # Visible tests first, since their messages say more.
    for k in sorted(calls, key=lambda k: bool((of := batch.values_of(k)) and of.hidden)):
        values = batch.values_of(k)
        checks = check_batch(batch, truth, [k], measures=False)
        wrong = next((check for check in checks if _is_wrong(check, truth)), None)
        if values and wrong:
            raise fault_with_values([values], Outcome.WRONG_ANSWER, describe(wrong))


def _is_wrong(check: OutputCheck, truth: Truth) -> bool:
    """Whether an output is far off by a metric by which the reference itself is accurate."""
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
