"""The result of one test case, each output against the truth; and what stands for the results of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.verdict.outcome import Outcome
from harness.verdict.record import Record


class Budget(Record):
    """One error metric of one output: its value, its limit, and the reason for the limit."""

    error: float = Field(ge=0)
    allowed: float = Field(ge=0)
    reference_error: float = Field(ge=0, description="the honest reference's own error in the problem's dtype")
    factor: float = Field(gt=0, description="allowed = max(factor × reference_error, floor)")
    floor: float = Field(ge=0, description="a few ulps of the output's dtype")

    @property
    def met(self) -> bool:
        return self.error <= self.allowed


class BadElement(Record):
    """One wrong element; values are text so that NaN, infinities and 64-bit integers survive JSON."""

    index: tuple[int, ...]
    got: str
    expected: str
    error: str


class Mismatch(Record):
    """Why an output is wrong, in a form that helps its author find the line."""

    output: str
    shape: tuple[int, ...]
    dtype: str
    wrong: int = Field(ge=0, description="elements outside the budget, by the larger of the two metrics")
    total: int = Field(gt=0)
    nan_got: int = 0
    nan_expected: int = 0
    inf_got: int = 0
    inf_expected: int = 0
    whole: Literal["unwritten", "zeros"] | None = Field(
        default=None,
        description="all of it still holds what it held before the call, or is zero; no other pattern then",
    )
    allowed: str = Field(
        default="", description="how far an element may be from what is expected, where not the error budget decides"
    )
    worst_index: tuple[int, ...] | None = None
    first: tuple[BadElement, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        return 100.0 * self.wrong / self.total


class OutputCheck(Record):
    """One output of one case against the truth. Integer outputs have no budgets: they must be equal."""

    output: str
    dtype: str
    correct: bool
    max_error: Budget | None = None
    rms_error: Budget | None = None
    mismatch: Mismatch | None = None

    @model_validator(mode="after")
    def _wrong_needs_a_mismatch(self) -> Self:
        if self.correct == (self.mismatch is not None):
            raise ValueError("an output is either correct or has a mismatch")
        return self

    @property
    def share_of_budget(self) -> float:
        """The error as a share of what is allowed, by the worse of both metrics; 0 for integers, which have none."""
        return max((b.error / b.allowed for b in (self.max_error, self.rms_error) if b and b.allowed), default=0.0)

    def accepted(self) -> Self:
        """The same errors of an output that is right by another rule than the budgets."""
        return self.model_copy(update={"correct": True, "mismatch": None})


class CaseResult(Record):
    """One test case. A hidden case reports its outcome and nothing about its inputs."""

    name: str
    hidden: bool = False
    params: dict[str, int | str] = Field(default_factory=dict)
    outcome: Outcome
    message: str = ""
    outputs: tuple[OutputCheck, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.outcome is Outcome.ACCEPTED and not all(o.correct for o in self.outputs):
            raise ValueError("an accepted case has no wrong output")
        if self.outcome is not Outcome.ACCEPTED and not self.message:
            raise ValueError("a failed case says why")
        if self.hidden and (self.params or self.outputs):
            raise ValueError("a hidden case shows neither parameters nor values")
        return self


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
    counts = Counter(case.outcome for case in results if case.outcome is not Outcome.ACCEPTED)
    if Outcome.REJECTED in counts:
        return Outcome.REJECTED
    judged = set(counts) - {Outcome.UNSUPPORTED} or set(counts)
    return max(judged, key=lambda outcome: (counts[outcome], _SEVERITY.index(outcome)), default=Outcome.ACCEPTED)


def most_informative(failed: Sequence[CaseResult]) -> CaseResult:
    """The failed test with the smallest share of wrong elements in an output of more than one; hidden ones last."""

    def best_of(case: CaseResult) -> tuple[bool, float]:
        wrong = [how_informative(output.mismatch) for output in case.outputs if output.mismatch is not None]
        return min(wrong, default=(True, 0.0))

    return min(failed, key=lambda case: (case.hidden, *best_of(case)))


def how_informative(mismatch: Mismatch) -> tuple[bool, float]:
    """Lower is more informative: an output of one element has no pattern, and one that is wrong everywhere hides it."""
    return mismatch.total == 1, mismatch.percent
