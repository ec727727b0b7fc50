"""Summarizes the tests of one grading: the outcome that heads the verdict, and the test most useful to its author.

The judge asks for the first, `kernelmark.text.show` for the second. Trusted; pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.verdict import CaseResult, Mismatch, Outcome

# From the least severe to the most.
_SEVERITY = (
    Outcome.ACCEPTED,
    Outcome.UNSUPPORTED,
    Outcome.WRONG_ANSWER,
    Outcome.RUNTIME_ERROR,
    Outcome.COMPILE_ERROR,
    Outcome.TIMEOUT,
    Outcome.MEMORY_LIMIT,
    Outcome.REJECTED,
)


def outcome_of(results: Iterable[CaseResult]) -> Outcome:
    """The most frequent outcome of the failed tests; among equally frequent ones the most severe.

    A rejection heads the verdict however rare it is. `unsupported` heads it only if no test failed otherwise: a test
    that shows a bug outweighs it.
    """
    counts: Counter[Outcome] = Counter(case.outcome for case in results if case.outcome is not Outcome.ACCEPTED)
    if Outcome.REJECTED in counts:
        return Outcome.REJECTED
    judged: list[Outcome] = [outcome for outcome in counts if outcome is not Outcome.UNSUPPORTED]
    return max(
        judged or counts, key=lambda outcome: (counts[outcome], _SEVERITY.index(outcome)), default=Outcome.ACCEPTED
    )


def most_informative(failed: Sequence[CaseResult]) -> CaseResult:
    """The failed test with the smallest share of wrong elements in an output of more than one; hidden ones last."""
    return min(failed, key=lambda case: (case.hidden, *_best_of(case)))


def _best_of(case: CaseResult) -> tuple[bool, float]:
    wrong = [how_informative(output.mismatch) for output in case.outputs if output.mismatch is not None]
    return min(wrong, default=(True, 0.0))


def how_informative(mismatch: Mismatch) -> tuple[bool, float]:
    """Lower is more informative: an output of one element has no pattern, and one that is wrong everywhere hides it."""
    return mismatch.total == 1, mismatch.percent
