"""The expected outputs of a stack of calls: in float64 for the truth, in the problem's dtype for the error budget.

Trusted; runs the organizer's reference on the judge's device. Rounds have up to 2,048 small calls each, so the
reference is vectorised over them with `torch.vmap` where possible, and otherwise called one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harness.errors import ProblemError
from harness.problem import ResolvedCase
from harness.problem.elements import widened
from harness.problem.lists import Tensors, flatten, grouped
from harness.shared.carrier import carrier

if TYPE_CHECKING:
    from harness.judge.correctness.oracle import Oracle
    from harness.problem.reference import Reference

_VMAP_FROM = 4  # calls; below this the loop is cheaper than tracing


@dataclass(frozen=True)
class Expected:
    """`[c, *shape]` of every output by name: the truth, and a function for the reference's result in its own dtype.

    Of an inexact reference the truth is that same result: in the outputs' own dtypes, of which a copy in float64 would
    be twice as large, and tell no more.
    """

    given: Tensors
    truth: Tensors
    honest: Callable[[], Tensors]


class Truth:
    """The reference applied to one case."""

    def __init__(self, reference: Reference | Oracle, case: ResolvedCase) -> None:
        self.reference, self.case = reference, case
        self._scalars = {s.name: s.value for s in case.scalars}
        self._lists = {t.list_name for t in case.tensors if t.list_name}
        self._vectorised = not self._lists and reference.exact

    def __call__(self, given: Tensors, calls: int) -> Expected:
        """Compute the expected outputs of `calls` stacked calls on `given`.

        Of an inexact reference its own answer is the truth, whatever its error.
        """
        if not self.reference.exact:
            answer = self._run(given, calls)
            return Expected(given, answer, lambda: answer)
        exact = {name: widened(tensor) for name, tensor in given.items()}
        return Expected(given, self._run(exact, calls), lambda: self._run(given, calls))

    def _run(self, given: Tensors, calls: int) -> Tensors:
        if self._vectorised and given and calls >= _VMAP_FROM:
            try:
                return torch.vmap(self.one)(given)
            except (RuntimeError, ProblemError):
                # Control flow that depends on values cannot be vectorised; an error of the reference itself shows again
                # below.
                self._vectorised = False
        single = [self.one({n: t[k] for n, t in given.items()}) for k in range(calls)]
        return {name: _stack([s[name] for s in single]) for name in single[0]}

    def one(self, given: Tensors) -> Tensors:
        """The reference's answer to one call, in the dtypes that `given` leads to."""
        return flatten(self.reference(self.grouped(given), self._scalars, self.case))

    def grouped(self, named: Tensors) -> dict[str, Tensor | list[Tensor]]:
        """As the function `grouped`, for this case."""
        return grouped(named, self.case)


def _stack(tensors: list[Tensor]) -> Tensor:
    if len(tensors) == 1:
        (only,) = tensors  # without a copy where none is needed: it may be as large as the device allows
        return carrier(only).resolve_conj().resolve_neg().contiguous()[None].view(only.dtype)
    return torch.stack([carrier(tensor) for tensor in tensors]).view(tensors[0].dtype)
