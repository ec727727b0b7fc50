"""The values of a problem's tests at the sizes of a benchmark. Trusted; no torch.

A benchmark's own inputs are what a kernel usually gets. One that is right for them alone, for instance a softmax that
overflows on large inputs, passes every timed call: the tests that it would fail have other sizes, by which it can tell
them. So a benchmark is also tried, untimed, on what the tests hold.
"""

from __future__ import annotations

from harness.errors import ProblemError
from harness.kinds import DeviceKind
from harness.problem.dtypes import DTYPES
from harness.problem.problem import Problem
from harness.problem.resolve import ResolvedCase, ResolvedTensor


def other_values(problem: Problem, benchmark: ResolvedCase, device: DeviceKind) -> tuple[ResolvedCase, ...]:
    """The benchmark's case with the fills and options of each test of that device, under the test's name.

    Only those that differ from the benchmark's own and from each other. Left out is what does not suit the benchmark's
    dtypes, and what could make its call invalid: indices beyond those that it has itself. A foreign reference draws
    all inputs by itself, so there are none.
    """
    if problem.foreign is not None:
        return ()
    [of] = [case for case in problem.benchmarks if case.name == benchmark.name]
    found = {_values(benchmark): benchmark}
    for test in problem.tests:
        if device not in test.devices:
            continue
        given = {"name": test.name, "hidden": test.hidden, "fill": test.fill, "options": test.options}
        try:
            case = problem.resolve(of.model_copy(update=given))
        except ProblemError:  # values that the benchmark's dtypes do not hold
            continue
        if all(_suits(other, own) for other, own in zip(case.tensors, benchmark.tensors, strict=True)):
            found.setdefault(_values(case), case)
    return tuple(case for case in found.values() if case is not benchmark)


def _values(case: ResolvedCase) -> object:
    """A key that differs if the values of two cases of the same sizes do."""
    fills = {tensor.list_name or tensor.name: tensor.fill for tensor in case.tensors if tensor.role != "output"}
    return tuple(fills.items()), tuple(sorted(case.options.items()))


def _suits(other: ResolvedTensor, own: ResolvedTensor) -> bool:
    """Whether a tensor may hold these values: whole numbers, which may be indices, only within the benchmark's own."""
    if other.role == "output" or other.fill == own.fill:
        return True
    if "generated" in (other.fill.kind, own.fill.kind):
        return False
    if DTYPES[own.dtype].family not in ("integer", "bool"):
        return True
    (least, greatest), (low, high) = own.fill.extent, other.fill.extent
    return least <= low and high <= greatest
