"""The expected outputs of a stack of calls: in float64 for the truth, in the problem's dtype for the error budget.

Trusted; runs the organizer's reference on the judge's device. Rounds have up to 2,048 small calls each, so the
reference is vectorised over small ones with `torch.vmap` where possible, and otherwise called one by one: then what it
makes on the way, in float64, is there for one call at a time.
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
_VMAP_ELEMENTS = 1 << 22  # of a call's inputs; above this nothing is gained, and scores of attention took 44 GiB


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
        given = sum(tensor.elements for tensor in case.tensors if tensor.role != "output")
        self._vectorised = not self._lists and reference.exact and given <= _VMAP_ELEMENTS

    def __call__(self, given: Tensors, calls: int) -> Expected:
        """Compute the expected outputs of `calls` stacked calls on `given`.

        Of an inexact reference its own answer is the truth, whatever its error.
        """
        if not self.reference.exact:
            answer = self._run(given, calls)
            return Expected(given, answer, lambda: answer)
        return Expected(given, self._run(given, calls, widened), lambda: self._run(given, calls))

    def _run(self, given: Tensors, calls: int, converted: Callable[[Tensor], Tensor] = lambda t: t) -> Tensors:
        if self._vectorised and given and calls >= _VMAP_FROM:
            try:
                return torch.vmap(self.one)({name: converted(tensor) for name, tensor in given.items()})
            except (RuntimeError, ProblemError):
                # Control flow that depends on values cannot be vectorised; an error of the reference itself shows again
                # below.
                self._vectorised = False
        stacks: Tensors = {}
        for k in range(calls):
            for name, answer in self.one({n: converted(t[k]) for n, t in given.items()}).items():
                stacks[name] = _put(answer, stacks.get(name), k, calls)
        return stacks

    def one(self, given: Tensors) -> Tensors:
        """The reference's answer to one call, in the dtypes that `given` leads to."""
        return flatten(self.reference(self.grouped(given), self._scalars, self.case))

    def grouped(self, named: Tensors) -> dict[str, Tensor | list[Tensor]]:
        """As the function `grouped`, for this case."""
        return grouped(named, self.case)


def _put(answer: Tensor, stack: Tensor | None, k: int, calls: int) -> Tensor:
    """Put the answer of call k into its stack, `[calls, *shape]`, which the first one makes."""
    held = carrier(answer)
    if calls == 1:  # without a copy where none is needed: it may be as large as the device allows
        return held.resolve_conj().resolve_neg().contiguous()[None].view(answer.dtype)
    if stack is None:
        stack = held.new_empty((calls, *held.shape)).view(answer.dtype)
    carrier(stack)[k].copy_(held)
    return stack
