"""Tests a problem on its own cases: its reference must be accepted, and every null kernel refused.

Called by `kernelmark problems lint`. Trusted. It runs on the CPU without a sandbox, since it runs only the organizers'
reference. The seeds are fixed, so that a problem that passes today passes tomorrow.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial

import torch
from torch import Tensor

from harness.compare import beyond_steps, check_output, is_close, passes_fast_check
from harness.compare.budget import budget, rms_floor
from harness.errors import ProblemError
from harness.judge.correctness.arenas import poison
from harness.judge.correctness.truth import Truth
from harness.kinds import DeviceKind
from harness.problem import Case, Problem, ResolvedCase, Tolerance
from harness.problem.dtypes import DTYPES
from harness.problem.elements import info, numbers, rounded, same_bits, wide, widened
from harness.problem.lists import Tensors
from harness.problem.reference import Reference
from harness.problem_lint.finding import LintFinding, folded
from harness.problem_lint.null_kernels import NullKernel, Scene, kernels

# Limits of a case, for which a two-core CPU runs all null kernels in about two seconds.
MAX_ELEMENTS = 5_000_000
MAX_FLOPS = 3_000_000_000
_LARGE, _INT32 = 1 << 28, 1 << 31  # elements
_SEEDS = (1, 2, 3)  # for the inputs of the case, and for other inputs


class Examined:
    """One case on fixed inputs, with the judge's check of outputs."""

    def __init__(self, problem: Problem, reference: Reference, case: ResolvedCase) -> None:
        truth = Truth(reference, case)
        self.draws = [reference.draw(case, torch.Generator().manual_seed(seed)) for seed in _SEEDS]
        self.inputs = self.draws[0]
        copies = {name: t.clone() for name, t in self.inputs.items()}
        answers = [truth.of_call({n: widened(t) for n, t in inputs.items()}) for inputs in self.draws]
        self.exact = answers[0]
        self.random = None if reference.compares else self._random(truth)  # `compare` may judge a sample
        self.honest = truth.of_call(self.inputs)
        self.changed = next((n for n, t in self.inputs.items() if not same_bits(t, copies[n])), None)
        own = {t.name: getattr(torch, t.dtype) for t in case.tensors}
        right, *others = ({n: rounded(t, own[n]) for n, t in answer.items()} for answer in answers)
        self.scene = Scene(truth, self.inputs, _before(case, self.inputs), right, tuple(others))

    def _random(self, truth: Truth) -> str | None:
        """The output that the reference gives anew when it gets the same inputs again."""
        again = truth.of_call({n: widened(t) for n, t in self.inputs.items()})
        return next((n for n, t in again.items() if not _nearly_same(t, self.exact[n])), None)

    def refuses(self, outputs: Tensors) -> str | None:
        """Why outputs are wrong, or None if they are right.

        Raises:
            ProblemError: the problem's own `compare` fails on them.
        """
        truth = self.scene.truth
        if truth.reference.compares:
            got, inputs, exact = map(truth.grouped, (outputs, self.inputs, self.exact))
            return truth.reference.compare(got, inputs, exact, truth.case, partial(self._by_tolerance, outputs))
        wrong = self._wrong(outputs)
        return None if wrong is None else f"`{wrong}` is wrong"

    def _by_tolerance(self, outputs: Tensors, output: str) -> str | None:
        of_output = {name: got for name, got in outputs.items() if name.partition("[")[0] == output}
        if not of_output:
            raise KeyError(f"{output} is no output")
        wrong = self._wrong(of_output)
        return None if wrong is None else f"`{wrong}` is wrong"

    def remedy(self) -> str:
        """The advice for a problem whose reference is refused in its own dtype."""
        if self.scene.truth.reference.compares:
            return "mend `compare`, or fill inputs that the dtype can cope with"
        wrong = self._wrong(self.honest)
        if wrong is not None and info(self.honest[wrong].dtype).rounds:
            return "raise `tolerance`, or fill inputs that the dtype can cope with"
        return "fill inputs whose rounding does not change it, or define `compare`: integers have no tolerance"

    def _wrong(self, outputs: Tensors) -> str | None:
        """The first wrong output."""
        return next((name for name, got in outputs.items() if not self._is_right(name, got)), None)

    def _is_right(self, name: str, got: Tensor) -> bool:
        truth, honest, tolerance = self.exact[name], self.honest[name], self.scene.truth.case.tolerance.of_output(name)
        if tolerance.off_by is not None:
            return beyond_steps(got, truth, tolerance) is None
        if tolerance.rtol is not None:
            return is_close(got, truth, tolerance)
        if info(got.dtype).rounds and got.numel() and _clearly_wrong(got, truth, honest, tolerance):
            return False
        return passes_fast_check(got, truth, tolerance) or check_output(name, got, truth, honest, tolerance).correct


def examine(problem: Problem) -> list[LintFinding]:
    """All flaws of a problem, once for each cause. Those that are errors would also affect gradings.

    Raises:
        ProblemError: its `reference.py` cannot be imported, or lacks `reference`.
    """
    return folded(_examine(problem))


def _examine(problem: Problem) -> Iterator[LintFinding]:
    """All flaws, not grouped by cause."""
    reference = Reference.load(problem)
    yield from _check_hidden(problem)
    run, inputs = _Run(problem, kernels(problem)), _GeneratedInputs(reference)
    variants = [(case, drawn) for case in problem.benchmarks + problem.tests for drawn in _draws(case)]
    resolved_cases = [(case, problem.resolve(drawn)) for case, drawn in variants]
    broken: set[str] = set()
    for case, resolved in resolved_cases:
        if _too_large(resolved):
            continue
        try:
            yield from _check_costs(
                reference.with_cost(resolved, (torch.Generator().manual_seed(seed) for seed in _SEEDS))
            )
            examined = Examined(problem, reference, resolved)
            yield from inputs.look_at(examined)
            sound = list(_soundness(examined, benchmark=case in problem.benchmarks))
            yield from sound
            if not any(finding.level == "error" for finding in sound):
                yield from run.try_all(examined, case)
        except ProblemError as error:
            broken.add(case.name)
            yield LintFinding("error", (case.name,), "", str(error))
    yield from _other_values(problem, reference, broken)
    yield from inputs.fixed()
    yield from run.never_caught()
    yield from run.stale_exceptions()
    yield from _check_offsets(problem, [resolved for _, resolved in resolved_cases])
    yield from _too_large_cases(case for case, resolved in resolved_cases if _too_large(resolved))


def _other_values(problem: Problem, reference: Reference, broken: set[str]) -> Iterator[LintFinding]:
    """Check that benchmarks can be tried on the values of tests, and that the reference is right there.

    `broken` cases, which fail with their own values, are not tried with others.
    """
    for case in problem.benchmarks:
        resolved = problem.resolve(case)
        by_name = {other.name: other for device in case.devices for other in problem.other_values(resolved, device)}
        if not by_name:
            what = "no test has other values: a kernel that is right for those of the benchmark alone passes"
            remedy = "give a test another `fill`: large magnitudes, ties, zeros or masks, where they may occur"
            yield LintFinding("warning", (case.name,), "", what, remedy)
        for name, other in by_name.items() if not _too_large(resolved) else ():
            if broken.intersection((case.name, name)):
                continue
            try:
                examined = Examined(problem, reference, other)
                why = examined.refuses(examined.honest)
            except ProblemError as error:
                why = str(error)
            if why:
                what = f"the reference itself is refused with the values of test `{name}`: {why}"
                yield LintFinding("error", (case.name,), "", what, "give that test a fill that suits every size")


class _GeneratedInputs:
    """Checks that the results of `generate` depend on its seed, and on nothing else."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._fixed: dict[str, list[str]] = defaultdict(list)  # cases by tensor or list
        self._varies: set[str] = set()

    def look_at(self, examined: Examined) -> Iterator[LintFinding]:
        if not self._reference.generates:
            return
        case, (first, *others) = examined.scene.truth.case, examined.draws
        again = self._reference.generate(case, torch.Generator().manual_seed(_SEEDS[0]))
        members: dict[str, list[str]] = defaultdict(list)
        for tensor in case.tensors:
            if tensor.name in again:
                members[tensor.list_name or tensor.name].append(tensor.name)
        for name, own in members.items():
            if not all(same_bits(first[n], again[n]) for n in own):
                self._varies.add(name)
                what = f"`generate` makes another `{name}` when it gets the same seed again"
                remedy = "draw from `generator` alone: torch's own gives the same numbers in every new process"
                yield LintFinding("error", (case.name,), "", what, remedy)
            elif all(same_bits(first[n], other[n]) for n in own for other in others):
                self._fixed[name].append(case.name)
            else:
                self._varies.add(name)

    def fixed(self) -> Iterator[LintFinding]:
        for name, cases in self._fixed.items():
            what = f"`generate` makes the same `{name}` from every seed"
            if name in self._varies:
                yield LintFinding("note", tuple(dict.fromkeys(cases)), "", f"{what} here")
            else:
                yield LintFinding("warning", (), "", what, "draw it from `generator`, unless it is meant to be known")


def _draws(case: Case) -> Iterator[Case]:
    """The variants of a case to examine; if its sizes are random, the extremes and as many random draws."""
    rng = random.Random(_SEEDS[0])
    for extreme in case.extremes():
        yield extreme
        if case.draw:
            yield case.drawn(rng)


class _Run:
    """Runs the null kernels, and records where they passed.

    Each must fail in every benchmark, and in at least one test of each device and C symbol, since a submission may have
    separate code for each device and dtype.
    """

    def __init__(self, problem: Problem, candidates: list[NullKernel]) -> None:
        self._problem, self._kernels = problem, candidates
        self._caught: set[tuple[str, DeviceKind, str]] = set()
        self._passed: dict[tuple[str, DeviceKind, str], list[str]] = defaultdict(list)
        self._excused: set[str] = set()

    def try_all(self, examined: Examined, case: Case) -> Iterator[LintFinding]:
        """Run the null kernels that no earlier case has refused."""
        benchmark = case in self._problem.benchmarks
        for kernel in self._kernels:
            keys = [(kernel.name, device, examined.scene.truth.case.symbol) for device in case.devices]
            if not benchmark and self._caught.issuperset(keys):
                continue
            outputs = kernel.outputs(examined.scene)
            if outputs is None:
                continue
            passes = examined.refuses(outputs) is None
            if benchmark and passes and not self._excuse(kernel):
                yield LintFinding("error", (case.name,), kernel.name, "passes this benchmark case", kernel.remedy)
            for key in () if benchmark else keys:
                if passes:
                    self._passed[key].append(case.name)
                else:
                    self._caught.add(key)

    def never_caught(self) -> Iterator[LintFinding]:
        """The null kernels that pass all tests of a device and symbol."""
        by_name = {kernel.name: kernel for kernel in self._kernels}
        devices: dict[tuple[str, str, tuple[str, ...]], list[DeviceKind]] = defaultdict(list)
        for (name, device, symbol), cases in self._passed.items():
            if (name, device, symbol) not in self._caught and not self._excuse(by_name[name]):
                devices[name, symbol, tuple(cases)].append(device)
        for (name, symbol, passed), where in devices.items():
            what = f"passes every test of `{symbol}` on {' and '.join(where)}"
            yield LintFinding("error", passed, name, what, by_name[name].remedy)

    def stale_exceptions(self) -> Iterator[LintFinding]:
        """The precisions that the problem allows although they fail."""
        for low in self._problem.tolerance.lower_precision:
            if low not in self._excused:
                what = f"`tolerance.lower_precision` names {low}, which fails as it should"
                yield LintFinding("warning", (), "", what, "remove it")

    def _excuse(self, kernel: NullKernel) -> bool:
        if kernel.precision not in self._problem.tolerance.lower_precision:
            return False
        self._excused.add(str(kernel.precision))
        return True


def _check_hidden(problem: Problem) -> Iterator[LintFinding]:
    devices: tuple[DeviceKind, ...] = ("cpu", "cuda")
    for device in devices:
        tests = [case for case in problem.tests if device in case.devices]
        if tests and not any(case.hidden for case in tests):
            what = f"no test on {device} is hidden: its cases can be learnt by heart"
            yield LintFinding("warning", (), "", what, "add a test with `hidden = true`, of another size")


def _too_large(case: ResolvedCase) -> bool:
    elements = sum(tensor.elements for tensor in case.tensors)
    return elements > MAX_ELEMENTS or case.minimum_flops > MAX_FLOPS


def _check_offsets(problem: Problem, cases: Iterable[ResolvedCase]) -> Iterator[LintFinding]:
    """Note if no test is large enough to reveal 32-bit offsets, although the benchmarks are almost that large."""
    largest = max(tensor.span for case in cases for tensor in case.tensors)
    if _LARGE <= largest <= _INT32 and any("cuda" in case.devices for case in problem.benchmarks):
        what = f"the largest tensor has {largest:,} elements: offsets of 32 bits are never seen to overflow"
        remedy = 'if larger ones are to work, add a test of more than 2³¹ elements, with devices = ["cuda"], memory_gib'
        yield LintFinding("note", (), "", what, remedy)


def _too_large_cases(large: Iterable[Case]) -> Iterator[LintFinding]:
    """The cases that are too large to try null kernels on a CPU; those only for CUDA usually are."""
    for case in large:
        only = "" if "cpu" in case.devices else "for CUDA only, and "
        yield LintFinding("note", (case.name,), "", f"left out: {only}too large to try null kernels on a CPU")


def _check_costs(case: ResolvedCase) -> Iterator[LintFinding]:
    """Report a cost that is too high, which would reject honest kernels. (Loading a problem refuses a cost of 0.)"""
    most = sum(t.elements * DTYPES[t.dtype].size_bytes * (2 if t.role == "inout" else 1) for t in case.tensors)
    if case.minimum_bytes > most:
        what = f"`cost.bytes` is {case.minimum_bytes:,}, where all tensors have {most:,}"
        yield LintFinding("error", (case.name,), "", what, "count each input and output once: the least that must move")


def _soundness(examined: Examined, *, benchmark: bool) -> Iterator[LintFinding]:
    """The findings that make a case useless, whatever the null kernels do."""
    scene, name = examined.scene, (examined.scene.truth.case.name,)
    if examined.changed:
        yield LintFinding("error", name, "", f"the reference changes its input `{examined.changed}`", "work on a clone")
        return
    if examined.random:
        what = f"the reference gives another `{examined.random}` when it gets the same inputs again"
        yield LintFinding("error", name, "", what, "let `generate` draw what is random, as an input")
        return
    unbounded = any(not bool(_finite(t).all()) for t in scene.inputs.values())
    for output, right in scene.right.items():
        if examined.exact[output].dtype is not wide(right.dtype):
            what = f"`{output}` is a float, and no input is: there is no float64 truth to hold it against"
            yield LintFinding("error", name, "", what, "take one input as a float")
            return
        bad, total = int((~_finite(right)).sum()), numbers(right).numel()
        if bad and (bad == total or not unbounded):
            what = f"{bad:,} of {total:,} elements of `{output}` are NaN or infinite, all inputs are finite"
            what = what if not unbounded else f"every element of `{output}` is NaN or infinite"
            yield LintFinding(
                "error", name, "", what, "lower the fills' `scale`, or keep them where the answer is defined"
            )
            return
    try:
        why = examined.refuses(examined.honest)
    except ProblemError as error:
        why = str(error)
    if why:
        what = f"the reference itself is refused in its own dtype: {why}"
        yield LintFinding("error", name, "", what, examined.remedy())
    elif constant := next((n for n in scene.right if _constant(scene, n)), None):
        what = f"`{constant}` holds one value, whatever the inputs are"
        if benchmark:
            remedy = "fill the inputs so that the answer varies, or raise the sizes"
            yield LintFinding("error", name, "", what, remedy)
        else:  # a useful edge case; another check ensures that other tests refuse a constant
            yield LintFinding("note", name, "", f"{what}: this case alone would accept a constant")


def _nearly_same(one: Tensor, other: Tensor) -> bool:
    """Whether two results of one call differ by no more than sums in another order do in float64."""
    one, other = numbers(one), numbers(other)
    if not one.is_floating_point():
        return same_bits(one, other)
    largest = float(one.abs().nan_to_num(0, 0, 0).max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=1e-9, atol=1e-9 * largest, equal_nan=True)


def _constant(scene: Scene, name: str) -> bool:
    """Whether all elements of an output have the same value, in all draws."""
    seen = torch.cat([numbers(answer[name]).reshape(-1) for answer in (scene.right, *scene.others)])
    seen = seen.float() if seen.element_size() == 1 and seen.is_floating_point() else seen
    return bool(seen.numel()) and bool((seen == seen[0]).all())


def _clearly_wrong(got: Tensor, truth: Tensor, honest: Tensor, tolerance: Tolerance) -> bool:
    """A cheap test that is true only for wrong outputs: the RMS metric, if everything is finite."""
    if got.dtype in (torch.float64, torch.complex128):
        return False
    dtype, got, truth, honest = got.dtype, numbers(got), numbers(truth), numbers(honest)
    norm = torch.linalg.vector_norm
    of_truth, own, reference = (float(norm(t)) for t in (truth, got.float() - truth, honest.float() - truth))
    if not math.isfinite(of_truth + own + reference) or of_truth < 1e-30:
        return False
    rms = budget(own / of_truth, reference / of_truth, tolerance, rms_floor(dtype, tolerance))
    return rms.error > 1.01 * rms.allowed  # the sum's own rounding must not decide


def _before(case: ResolvedCase, inputs: Tensors) -> Tensors:
    """The content of the outputs before a call: inouts have their initial values, and outputs poison."""
    pattern = poison(random.Random(_SEEDS[0]).randbytes(16))
    held = {}
    for tensor in case.tensors:
        if tensor.role == "output":
            nbytes = tensor.elements * DTYPES[tensor.dtype].size_bytes
            raw = pattern.repeat(-(-nbytes // 16))[:nbytes]
            held[tensor.name] = raw.view(getattr(torch, tensor.dtype)).view(tensor.shape)
        elif tensor.role == "inout":
            held[tensor.name] = inputs[tensor.name]
    return held


def _finite(tensor: Tensor) -> Tensor:
    """A mask of the finite elements, or of their finite parts."""
    return numbers(tensor).double().isfinite()  # float8 does not support `isfinite`
