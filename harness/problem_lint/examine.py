"""Tests a problem: its reference must be accepted and every null kernel refused, on the problem's own cases.

`kernelmark problems lint` calls `examine`. Trusted, on the CPU, without a sandbox: nothing runs but the organizers'
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

# What a two-core CPU does in about two seconds, with all null kernels of a case.
MOST_ELEMENTS = 5_000_000
MOST_FLOPS = 3_000_000_000
_LARGE, _INT32 = 1 << 28, 1 << 31  # elements
_SEEDS = (1, 2, 3)  # for the inputs of the case, and for other inputs


class Examined:
    """One case on fixed inputs, and the judge's check of any outputs for it."""

    def __init__(self, problem: Problem, reference: Reference, case: ResolvedCase) -> None:
        truth = Truth(reference, case)
        self.draws = [reference.draw(case, torch.Generator().manual_seed(seed)) for seed in _SEEDS]
        self.given, answers = self.draws[0], []
        held = {name: t.clone() for name, t in self.given.items()}
        for given in self.draws:
            answers.append(truth.one({n: widened(t) for n, t in given.items()}))
        self.exact = answers[0]
        self.honest = truth.one(self.given)
        self.changed = next((n for n, t in self.given.items() if not same_bits(t, held[n])), None)
        own = {t.name: getattr(torch, t.dtype) for t in case.tensors}
        right, *others = ({n: rounded(t, own[n]) for n, t in answer.items()} for answer in answers)
        self.scene = Scene(truth, self.given, _before(case, self.given), right, tuple(others))

    def refuses(self, outputs: Tensors) -> str | None:
        """Why outputs are wrong, or None if they are right.

        Raises:
            ProblemError: the problem's own `compare` fails on them.
        """
        truth = self.scene.truth
        if truth.reference.compares:
            got, given, exact = map(truth.grouped, (outputs, self.given, self.exact))
            return truth.reference.compare(got, given, exact, truth.case, partial(self._usual, outputs))
        wrong = self._wrong(outputs)
        return None if wrong is None else f"`{wrong}` is wrong"

    def _usual(self, outputs: Tensors, output: str) -> str | None:
        of_output = {name: got for name, got in outputs.items() if name.partition("[")[0] == output}
        wrong = self._wrong(of_output)
        return None if wrong is None else f"`{wrong}` is wrong"

    def remedy(self) -> str:
        """How to repair a problem whose reference is refused in its own dtype."""
        if self.scene.truth.reference.compares:
            return "mend `compare`, or fill inputs that the dtype can cope with"
        wrong = self._wrong(self.honest)
        if wrong is not None and info(self.honest[wrong].dtype).rounds:
            return "raise `tolerance`, or fill inputs that the dtype can cope with"
        return "fill inputs whose rounding does not change it, or define `compare`: integers have no tolerance"

    def _wrong(self, outputs: Tensors) -> str | None:
        """The first wrong output."""
        return next((name for name, got in outputs.items() if not self._right(name, got)), None)

    def _right(self, name: str, got: Tensor) -> bool:
        truth, honest, tolerance = self.exact[name], self.honest[name], self.scene.truth.case.tolerance.of_output(name)
        if tolerance.off_by is not None:
            return beyond_steps(got, truth, tolerance) is None
        if tolerance.rtol is not None:
            return is_close(got, truth, tolerance)
        if info(got.dtype).rounds and got.numel() and _surely_wrong(got, truth, honest, tolerance):
            return False
        return passes_fast_check(got, truth, tolerance) or check_output(name, got, truth, honest, tolerance).correct


def examine(problem: Problem) -> list[LintFinding]:
    """Everything that is wrong with a problem, once for each cause; the errors among it would also affect gradings.

    Raises:
        ProblemError: its `reference.py` cannot be imported, or lacks `reference`.
    """
    return folded(_examine(problem))


def _examine(problem: Problem) -> Iterator[LintFinding]:
    """The same, case by case."""
    reference = Reference.load(problem)
    yield from _without_a_hidden_case(problem)
    run, inputs = _Run(problem, kernels(problem)), _GeneratedInputs(reference)
    given = [(case, drawn) for case in problem.benchmarks + problem.tests for drawn in _draws(case)]
    resolved_cases = [(case, problem.resolve(drawn)) for case, drawn in given]
    broken: set[str] = set()
    for case, resolved in resolved_cases:
        if _too_large(resolved):
            continue
        try:
            yield from _costs(reference.with_cost(resolved, (torch.Generator().manual_seed(seed) for seed in _SEEDS)))
            examined = Examined(problem, reference, resolved)
            yield from inputs.look_at(examined)
            sound = list(_unsound(examined, benchmark=case in problem.benchmarks))
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
    yield from _offsets(problem, [resolved for _, resolved in resolved_cases])
    yield from _left_out(case for case, resolved in resolved_cases if _too_large(resolved))


def _other_values(problem: Problem, reference: Reference, broken: set[str]) -> Iterator[LintFinding]:
    """Whether the benchmarks can also be tried on what the tests hold, and the reference is right there.

    What is `broken` with its own values has been reported: it is not tried with others.
    """
    for case in problem.benchmarks:
        resolved = problem.resolve(case)
        by_name = {of.name: of for device in case.devices for of in problem.other_values(resolved, device)}
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
    """Whether what `generate` makes follows from its seed, and from nothing else."""

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
    """The variants of a case to examine: if it draws its sizes, the extremes and as many draws in between."""
    rng = random.Random(_SEEDS[0])
    for extreme in case.extremes():
        yield extreme
        if case.draw:
            yield case.drawn(rng)


class _Run:
    """Which null kernels passed where. Each must fail in every benchmark, and in a test of each device and C symbol: a
    submission may have separate code for each device and dtype.
    """

    def __init__(self, problem: Problem, candidates: list[NullKernel]) -> None:
        self._problem, self._kernels = problem, candidates
        self._caught: set[tuple[str, DeviceKind, str]] = set()
        self._passed: dict[tuple[str, DeviceKind, str], list[str]] = defaultdict(list)
        self._excused: set[str] = set()

    def try_all(self, examined: Examined, case: Case) -> Iterator[LintFinding]:
        """Run the null kernels that a case is still needed for."""
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
        """The null kernels that passed every test of a device and symbol."""
        by_name = {kernel.name: kernel for kernel in self._kernels}
        devices: dict[tuple[str, str, tuple[str, ...]], list[DeviceKind]] = defaultdict(list)
        for (name, device, symbol), cases in self._passed.items():
            if (name, device, symbol) not in self._caught and not self._excuse(by_name[name]):
                devices[name, symbol, tuple(cases)].append(device)
        for (name, symbol, passed), where in devices.items():
            what = f"passes every test of `{symbol}` on {' and '.join(where)}"
            yield LintFinding("error", passed, name, what, by_name[name].remedy)

    def stale_exceptions(self) -> Iterator[LintFinding]:
        """Precisions that the problem allows, but that fail."""
        for low in self._problem.tolerance.lower_precision:
            if low not in self._excused:
                what = f"`tolerance.lower_precision` names {low}, which fails as it should"
                yield LintFinding("warning", (), "", what, "remove it")

    def _excuse(self, kernel: NullKernel) -> bool:
        if kernel.precision not in self._problem.tolerance.lower_precision:
            return False
        self._excused.add(str(kernel.precision))
        return True


def _without_a_hidden_case(problem: Problem) -> Iterator[LintFinding]:
    devices: tuple[DeviceKind, ...] = ("cpu", "cuda")
    for device in devices:
        tests = [case for case in problem.tests if device in case.devices]
        if tests and not any(case.hidden for case in tests):
            what = f"no test on {device} is hidden: its cases can be learnt by heart"
            yield LintFinding("warning", (), "", what, "add a test with `hidden = true`, of another size")


def _too_large(case: ResolvedCase) -> bool:
    elements = sum(tensor.elements for tensor in case.tensors)
    return elements > MOST_ELEMENTS or case.minimum_flops > MOST_FLOPS


def _offsets(problem: Problem, cases: Iterable[ResolvedCase]) -> Iterator[LintFinding]:
    """Whether an offset of 32 bits would be seen, if benchmarks are so large that somebody may soon need more."""
    largest = max(tensor.span for case in cases for tensor in case.tensors)
    if _LARGE <= largest <= _INT32 and any("cuda" in case.devices for case in problem.benchmarks):
        what = f"the largest tensor has {largest:,} elements: offsets of 32 bits are never seen to overflow"
        remedy = 'if larger ones are to work, add a test of more than 2³¹ elements, with devices = ["cuda"], memory_gib'
        yield LintFinding("note", (), "", what, remedy)


def _left_out(large: Iterable[Case]) -> Iterator[LintFinding]:
    """Which cases no null kernel was tried on; those for CUDA alone are normally that large."""
    for case in large:
        only = "" if "cpu" in case.devices else "for CUDA only, and "
        yield LintFinding("note", (case.name,), "", f"left out: {only}too large to try null kernels on a CPU")


def _costs(case: ResolvedCase) -> Iterator[LintFinding]:
    """Zero is refused when the problem is loaded; too high a cost would reject honest kernels."""
    most = sum(t.elements * DTYPES[t.dtype].size_bytes * (2 if t.role == "inout" else 1) for t in case.tensors)
    if case.minimum_bytes > most:
        what = f"`cost.bytes` is {case.minimum_bytes:,}, where all tensors have {most:,}"
        yield LintFinding("error", (case.name,), "", what, "count each input and output once: the least that must move")


def _unsound(examined: Examined, *, benchmark: bool) -> Iterator[LintFinding]:
    """The findings that make a case useless before any null kernel is tried."""
    scene, name = examined.scene, (examined.scene.truth.case.name,)
    if examined.changed:
        yield LintFinding("error", name, "", f"the reference changes its input `{examined.changed}`", "work on a clone")
        return
    unbounded = any(not bool(_finite(t).all()) for t in scene.given.values())
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
        else:  # an edge case worth testing; elsewhere it is checked that other tests refuse a constant
            yield LintFinding("note", name, "", f"{what}: this case alone would accept a constant")


def _constant(scene: Scene, name: str) -> bool:
    """Whether an output has the same value in all elements for all draws (a single element may vary between draws)."""
    seen = torch.cat([numbers(answer[name]).reshape(-1) for answer in (scene.right, *scene.others)])
    seen = seen.float() if seen.element_size() == 1 and seen.is_floating_point() else seen
    return bool(seen.numel()) and bool((seen == seen[0]).all())


def _surely_wrong(got: Tensor, truth: Tensor, honest: Tensor, tolerance: Tolerance) -> bool:
    """A cheap test that is true only for wrong outputs: the RMS metric alone, if everything is finite."""
    if got.dtype in (torch.float64, torch.complex128):
        return False
    dtype, got, truth, honest = got.dtype, numbers(got), numbers(truth), numbers(honest)
    norm = torch.linalg.vector_norm
    of_truth, own, reference = (float(norm(t)) for t in (truth, got.float() - truth, honest.float() - truth))
    if not math.isfinite(of_truth + own + reference) or of_truth < 1e-30:
        return False
    rms = budget(own / of_truth, reference / of_truth, tolerance, rms_floor(dtype, tolerance))
    return rms.error > 1.01 * rms.allowed  # the sum's own rounding must not decide


def _before(case: ResolvedCase, given: Tensors) -> Tensors:
    """Inouts as given; outputs hold poison, as in a grading."""
    pattern = poison(random.Random(_SEEDS[0]).randbytes(16))
    held = {}
    for tensor in case.tensors:
        if tensor.role == "output":
            nbytes = tensor.elements * DTYPES[tensor.dtype].size_bytes
            raw = pattern.repeat(-(-nbytes // 16))[:nbytes]
            held[tensor.name] = raw.view(getattr(torch, tensor.dtype)).view(tensor.shape)
        elif tensor.role == "inout":
            held[tensor.name] = given[tensor.name]
    return held


def _finite(tensor: Tensor) -> Tensor:
    """Whether each element is finite, or each part of it."""
    return numbers(tensor).double().isfinite()  # which float8 does not support
