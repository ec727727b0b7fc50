"""The result of one test case, with the check of each output; and the outcome of all test cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.verdict.outcome import Outcome
from harness.verdict.record import FrozenModel


class Budget(FrozenModel):
    """One error metric of one output: its value, its limit, and the reason for the limit."""

    error: float = Field(ge=0)
    allowed: float = Field(ge=0)
    reference_error: float = Field(ge=0, description="the honest reference's own error in the problem's dtype")
    factor: float = Field(gt=0, description="allowed = max(factor × reference_error, floor)")
    floor: float = Field(ge=0, description="a few ulps of the output's dtype")

    @property
    def met(self) -> bool:
        return self.error <= self.allowed


class BadElement(FrozenModel):
    """One wrong element; values are text so that NaN, infinities and 64-bit integers survive JSON."""

    index: tuple[int, ...]
    got: str
    expected: str
    error: str


class Mismatch(FrozenModel):
    """What is wrong with an output, in a form that helps its author to find the bug."""

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


class OutputCheck(FrozenModel):
    """The check of one output of one case. Integer outputs have no budgets, since they must be equal."""

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
        """The error as a share of the allowed error, by the worse of both metrics; 0 for integers."""
        return max((b.error / b.allowed for b in (self.max_error, self.rms_error) if b and b.allowed), default=0.0)

    def accepted(self) -> Self:
        """The same check of an output that is right by another rule than the budgets."""
        return self.model_copy(update={"correct": True, "mismatch": None})


class CaseResult(FrozenModel):
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
    """The most frequent outcome of the failed tests; of equally frequent ones the most severe.

    A single rejection decides. `unsupported` decides only if no test failed for another reason, since a bug is more
    important.
    """
    counts = Counter(case.outcome for case in results if case.outcome is not Outcome.ACCEPTED)
    if Outcome.REJECTED in counts:
        return Outcome.REJECTED
    judged = set(counts) - {Outcome.UNSUPPORTED} or set(counts)
    return max(judged, key=lambda outcome: (counts[outcome], _SEVERITY.index(outcome)), default=Outcome.ACCEPTED)


def most_informative(failed: Sequence[CaseResult]) -> CaseResult:
    """The failed test whose output has the smallest share of wrong elements; hidden tests come last."""

    def best_of(case: CaseResult) -> tuple[bool, float]:
        wrong = [how_informative(output.mismatch) for output in case.outputs if output.mismatch is not None]
        return min(wrong, default=(True, 0.0))

    return min(failed, key=lambda case: (case.hidden, *best_of(case)))


def how_informative(mismatch: Mismatch) -> tuple[bool, float]:
    """A sort key; lower is more informative: one element shows no pattern, nor does an output that is all wrong."""
    return mismatch.total == 1, mismatch.percent
