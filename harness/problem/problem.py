"""A problem that can be graded: every key agrees with the others, and every case resolves. Trusted; no torch."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from harness.problem.checks import check
from harness.problem.resolve import ResolvedCase, resolve_case
from harness.problem.signature import signature
from harness.problem.spec import Case, ProblemSpec


class Problem(ProblemSpec):
    """A problem that can be graded: every one of its cases resolves.

    Raises:
        ProblemError: at construction, if keys contradict each other; the key is named.
    """

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check(self)
        return self

    @property
    def signature(self) -> str:
        """What a Python submission defines, and how it is called: `softmax(x) -> y`."""
        return signature(self)

    def resolve(self, case: Case) -> ResolvedCase:
        """Compute the sizes, dtypes, fills, scalars and costs of a case whose sizes have been drawn.

        Raises:
            ProblemError: the case does not fit the problem. Never for the problem's own cases: construction tried them,
            and the extremes of drawn ones.
        """
        return resolve_case(self, case)
