"""Makes the problem that a baseline of `[[baselines]]` solves instead of the graded one. Trusted; imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from harness.problem.spec import BaselineSpec, CallSpec, Case, Cost, ProblemSpec
from harness.problem.tolerance import Tolerance

P = TypeVar("P", bound=ProblemSpec)


def another(problem: P, baseline: BaselineSpec) -> P:
    """A problem with the same cases, but with the baseline's function and arguments. Its outputs are not checked."""
    return problem.model_copy(
        update={
            "entry": baseline.entry,
            "tensors": baseline.tensors,
            "scalars": baseline.scalars,
            "call": CallSpec(),
            "foreign": None,
            "cost": Cost(bytes=1, flops=0),
            "tolerance": Tolerance(),
            "tests": _plain(problem.tests),
            "benchmarks": _plain(problem.benchmarks),
            "baselines": (),
            "has_reference": False,
        }
    )


def _plain(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The cases without fills and options, which belong to the problem's own tensors."""
    return tuple(case.model_copy(update={"fill": {}, "options": {}}) for case in cases)
