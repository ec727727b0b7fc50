"""Tests a problem with a foreign reference: whether answers that cost no work pass. Trusted; the reference is not.

Its reference runs in a sandbox, on the device of the gradings, and whoever decides in a grading decides here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress

import torch

from harness.compare import is_close
from harness.device import DEVICES
from harness.errors import ProblemError
from harness.judge.correctness.known import known_inputs
from harness.judge.correctness.oracle import Oracle
from harness.judge.correctness.truth import Tensors, Truth
from harness.kinds import DeviceKind
from harness.problem import Case, Problem, ResolvedCase
from harness.problem.elements import numbers, of_numbers
from harness.problem_lint.finding import LintFinding, folded
from harness.sandbox import Provider
from harness.shared.carrier import carrier

_SEEDS = (1, 2)
_REMEDY = "tell its authors; a score of it says little"

# Each gets the right answer to the inputs, and that to other inputs.
_KERNELS: Mapping[str, Callable[[Tensors, Tensors], Tensors]] = {
    "all zeros": lambda right, other: {
        name: torch.zeros_like(carrier(each)).view(each.dtype) for name, each in right.items()
    },
    "one constant": lambda right, other: {name: _constant(each) for name, each in right.items()},
    "the answer to other inputs": lambda right, other: other,
}


def examine_foreign(problem: Problem, provider: Provider, device: DeviceKind) -> list[LintFinding]:
    """The null kernels that pass, and what goes wrong in the reference; each with its cases."""
    return folded(_examine(problem, provider, device))


def _examine(problem: Problem, provider: Provider, device: DeviceKind) -> Iterator[LintFinding]:
    with closing(Oracle(problem, provider, device)) as oracle:
        for case in _different(problem, device):
            try:
                for name in _passing(oracle, problem.resolve(case), device):
                    yield LintFinding("error", (case.name,), name, "passes", _REMEDY)
            except ProblemError as error:
                yield LintFinding("error", (case.name,), "", str(error))
        timed = [problem.resolve(case) for case in problem.benchmarks if device in case.devices]
        with suppress(ProblemError):  # which was told above
            for doubt in known_inputs(problem, oracle, timed, device):
                yield LintFinding("warning", (), "", f"{doubt.text}; no result of it has a rank", doubt.advice)


def _different(problem: Problem, device: DeviceKind) -> Iterator[Case]:
    """The cases on a device, without those that repeat another's sizes and options."""
    seen = []
    for case in problem.benchmarks + problem.tests:
        given = (case.params, case.options)
        if device in case.devices and given not in seen:
            seen.append(given)
            yield case


def _passing(oracle: Oracle, case: ResolvedCase, device: DeviceKind) -> Iterator[str]:
    truth = Truth(oracle, case)
    given, others = (oracle.generate(case, DEVICES[device].generator(seed)) for seed in _SEEDS)
    stacked = {name: tensor[None] for name, tensor in given.items()}
    expected = truth(stacked, 1)
    right = {name: each[0] for name, each in expected.honest().items()}
    other = {name: each[0] for name, each in truth({n: t[None] for n, t in others.items()}, 1).honest().items()}
    for name, kernel in _KERNELS.items():
        got = kernel(right, other)
        if oracle.compares:
            wanted = {n: t[0] for n, t in expected.truth.items()}
            one = [truth.grouped(each) for each in (got, given, wanted)]
            passes = oracle.compare(one[0], one[1], one[2], case) is None
        else:
            passes = all(is_close(got[n], expected.truth[n][0], case.tolerance) for n in got)
        if passes:
            yield name


def _constant(right: torch.Tensor) -> torch.Tensor:
    """The mean of what is finite, everywhere."""
    wide = numbers(right).double()
    return of_numbers(torch.full_like(wide, float(wide[wide.isfinite()].mean().nan_to_num())), right.dtype)
