"""Tests a problem with a foreign reference: answers that need no work must not pass. Trusted; the reference is not.

The reference runs in a sandbox on the device of the gradings. If its own check decides in gradings, it decides here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

from harness.compare import is_close
from harness.device import DEVICES
from harness.errors import ProblemError
from harness.judge.correctness.known import known_inputs
from harness.judge.correctness.oracle import Oracle
from harness.judge.correctness.truth import Truth
from harness.kinds import DeviceKind
from harness.problem import Case, Problem, ResolvedCase
from harness.problem_lint.finding import LintFinding, folded
from harness.problem_lint.null_kernels import WITHOUT_WORK, Scene
from harness.sandbox import Provider

_SEEDS = (1, 2)
_REMEDY = "tell its authors; a score of it says little"


def examine_foreign(problem: Problem, provider: Provider, device: DeviceKind) -> list[LintFinding]:
    """The null kernels that pass, and the failures of the reference, each with its cases."""
    return folded(_examine(problem, provider, device))


def _examine(problem: Problem, provider: Provider, device: DeviceKind) -> Iterator[LintFinding]:
    with closing(Oracle(problem, provider, device)) as oracle:
        for case in _distinct_cases(problem, device):
            try:
                for name in _passing(oracle, problem.resolve(case), device):
                    yield LintFinding("error", (case.name,), name, "passes", _REMEDY)
            except ProblemError as error:
                yield LintFinding("error", (case.name,), "", str(error))
        timed = [problem.resolve(case) for case in problem.benchmarks if device in case.devices]
        with suppress(ProblemError):  # it was reported above
            for doubt in known_inputs(problem, oracle, timed, device):
                yield LintFinding("warning", (), "", f"{doubt.text}; no result of it has a rank", doubt.advice)


def _distinct_cases(problem: Problem, device: DeviceKind) -> Iterator[Case]:
    """The cases on a device, without those that repeat the sizes and options of another."""
    seen = []
    for case in problem.benchmarks + problem.tests:
        key = (case.params, case.options)
        if device in case.devices and key not in seen:
            seen.append(key)
            yield case


def _passing(oracle: Oracle, case: ResolvedCase, device: DeviceKind) -> Iterator[str]:
    truth = Truth(oracle, case)
    draws = [oracle.generate(case, DEVICES[device].generator(seed)) for seed in _SEEDS]
    right, others = map(truth.of_call, draws)
    scene = Scene(truth, draws[0], {}, right, (others,))
    for kernel in WITHOUT_WORK:
        got = kernel.outputs(scene) or {}
        if oracle.compares:
            outputs, inputs, exact = map(truth.grouped, (got, draws[0], right))
            passes = oracle.compare(outputs, inputs, exact, case) is None
        else:
            passes = all(is_close(got[output], right[output], case.tolerance) for output in got)
        if passes:
            yield kernel.name
