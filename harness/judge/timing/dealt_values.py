"""Checks calls of benchmarks on the values of the problem's tests. Trusted.

A benchmark is timed on its usual values. Between the timed calls there are untimed calls with the values of tests:
large numbers, masks, ties. The values and the moments are random, so a call cannot know whether it is timed.
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
    """Deals the values of tests to the benchmarks of one grading. Values that were dealt least often come first."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def dealer_for(self, case: GradedCase) -> Callable[[int], list[ResolvedCase]]:
        """A function that deals up to a number of values to a benchmark. No value is dealt twice, so it may return
        fewer.
        """
        remaining = list(case.other_values)

        def deal(most: int) -> list[ResolvedCase]:
            remaining.sort(key=lambda case: (self._times[case.name], secrets.randbits(32)))
            dealt, remaining[:] = remaining[:most], remaining[most:]
            self._times.update(case.name for case in dealt)
            return dealt

        return deal


def fault_with_values(values: Sequence[ResolvedCase], outcome: Outcome, message: str) -> SubmissionFault:
    """The fault of calls that had these values. If one belongs to a hidden test, the message names only the outcome."""
    if len(values) > 1:
        source = "the problem's tests"
    else:
        source = "a hidden test" if values[0].hidden else f"test {values[0].name}"
    shown = outcome.replace("_", " ") if any(case.hidden for case in values) else message
    return SubmissionFault(outcome, f"with the values of {source}: {shown}")


def check_values(batch: Batch, truth: Truth, calls: Sequence[int]) -> None:
    """Check the calls of a batch with the values of tests, after its snapshot was taken.

    The values of a test were chosen for the test's own sizes. At the sizes of a benchmark a sum may cancel, or the
    reference itself may be too inaccurate to judge by. So only errors far beyond the budget count as wrong here; the
    timed calls and the tests judge precision.

    Raises:
        SubmissionFault: an output is wrong.
    """
    if not first_wrong(batch, truth, calls):
        return
    dealt = [(k, values) for k in calls if (values := batch.values_of(k))]
    for k, values in sorted(dealt, key=lambda call: call[1].hidden):  # visible tests first: their messages say more
        for check in check_batch(batch, truth, [k], measures=False):
            if _is_wrong(check, truth):
                raise fault_with_values([values], Outcome.WRONG_ANSWER, describe(check))


def _is_wrong(check: OutputCheck, truth: Truth) -> bool:
    """Whether an output is far off by a metric by which the reference itself is accurate."""
    by_budget = truth.case.tolerance.rtol is None and not truth.reference.compares
    budgets = [budget for budget in (check.max_error, check.rms_error) if budget is not None]
    if check.correct or not (by_budget and budgets):
        return not check.correct
    found = check.mismatch
    assert found is not None
    counted = (found.nan_got, found.inf_got) != (found.nan_expected, found.inf_expected)
    misplaced = counted or all(budget.met for budget in budgets)  # there may be as many in other places
    return misplaced or any(
        budget.factor * budget.reference_error <= CEILING and budget.error > min(_FAR * budget.allowed, CEILING)
        for budget in budgets
    )
