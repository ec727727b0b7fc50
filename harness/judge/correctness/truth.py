"""Computes the expected outputs of a stack of calls: in float64 as the truth, in the problem's dtype for the budget.

Trusted; runs the organizer's reference on the judge's device. Rounds have up to 2,048 small calls, so the reference is
vectorised over small calls with `torch.vmap` where possible. Otherwise it is called once per call, so that its float64
intermediates exist for one call at a time.
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
_VMAP_ELEMENTS = 1 << 22  # input elements of a call; above this nothing is gained, and attention scores took 44 GiB


@dataclass(frozen=True)
class ExpectedOutputs:
    """The inputs and expected outputs of a stack of calls, by name, `[c, *shape]` each."""

    inputs: Tensors
    truth: Tensors
    """The right outputs; in float64 if the reference is exact, otherwise in the outputs' own dtypes."""
    honest: Callable[[], Tensors]
    """Computes what an honest implementation gives: the reference's result in the problem's dtypes."""


class Truth:
    """The reference applied to one case."""

    def __init__(self, reference: Reference | Oracle, case: ResolvedCase) -> None:
        self.reference, self.case = reference, case
        self._scalars = {s.name: s.value for s in case.scalars}
        self._lists = {t.list_name for t in case.tensors if t.list_name}
        elements = sum(tensor.elements for tensor in case.tensors if tensor.role != "output")
        self._vectorised = not self._lists and reference.exact and elements <= _VMAP_ELEMENTS

    def __call__(self, inputs: Tensors, calls: int) -> ExpectedOutputs:
        """Compute the expected outputs of `calls` stacked calls on these inputs.

        The answer of an inexact reference is the truth, whatever its error.
        """
        if not self.reference.exact:
            answer = self._run(inputs, calls)
            return ExpectedOutputs(inputs, answer, lambda: answer)
        return ExpectedOutputs(inputs, self._run(inputs, calls, widened), lambda: self._run(inputs, calls))

    def _run(self, inputs: Tensors, calls: int, convert: Callable[[Tensor], Tensor] = lambda t: t) -> Tensors:
        if self._vectorised and inputs and calls >= _VMAP_FROM:
            try:
                return torch.vmap(self.of_call)({name: convert(tensor) for name, tensor in inputs.items()})
            except (RuntimeError, ProblemError):
                # Control flow that depends on values cannot be vectorised. An error of the reference itself is raised
                # again below.
                self._vectorised = False
        stacks: Tensors = {}
        for k in range(calls):
            for name, answer in self.of_call({n: convert(t[k]) for n, t in inputs.items()}).items():
                stacks[name] = _put(answer, stacks.get(name), k, calls)
        return stacks

    def of_call(self, inputs: Tensors) -> Tensors:
        """The reference's answer to one call; its dtypes follow from those of the inputs."""
        return flatten(self.reference(self.grouped(inputs), self._scalars, self.case))

    def grouped(self, named: Tensors) -> dict[str, Tensor | list[Tensor]]:
        """Call the function `grouped` for this case."""
        return grouped(named, self.case)


def _put(answer: Tensor, stack: Tensor | None, k: int, calls: int) -> Tensor:
    """Put the answer of call k into its stack, `[calls, *shape]`, which is created for the first call."""
    held = carrier(answer)
    if calls == 1:  # avoid a copy where possible, since the answer may be very large
        return held.resolve_conj().resolve_neg().contiguous()[None].view(answer.dtype)
    if stack is None:
        stack = held.new_empty((calls, *held.shape)).view(answer.dtype)
    carrier(stack)[k].copy_(held)
    return stack
