"""A problem that can be graded: every key agrees with the others, and every case resolves. Trusted; no torch."""

from __future__ import annotations

import symtable
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from harness.errors import ProblemError
from harness.files import outside
from harness.kinds import DeviceKind
from harness.problem.another import another
from harness.problem.checks import check
from harness.problem.dtypes import DTYPES
from harness.problem.resolve import ResolvedCase, ResolvedTensor, resolve_case
from harness.problem.signature import forms
from harness.problem.spec import Case, ProblemSpec
from harness.shared.call import written
from harness.shared.foreign import FORMS

Decider = Literal["reference", "compare", "allclose", "budget"]


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
        """The definition of a Python submission: `softmax(x, y)`, `softmax(x) -> y`, of a class `Model(n)(x) -> y`."""
        if self.call.style == "writes":
            given = [*(spec.name for spec in self.tensors), *(spec.name for spec in self.scalars)]
            return f"{self.entry}({', '.join(given)})"
        of = forms(self)
        made = f"({', '.join(map(written, of.init))})" if self.call.style == "module" else ""
        return f"{self.entry}{made}({', '.join(map(written, of.arguments))}) -> {written(of.result)}"

    @property
    def without_hidden(self) -> Self:
        """The problem with its visible tests alone, and still with its own hash."""
        shown = tuple(case for case in self.tests if not case.hidden)
        return self.model_copy(update={"tests": shown, "private": None})

    @property
    def decided_by(self) -> Decider:
        """The judge of an answer: a foreign reference's own check, `compare`, `rtol` and `atol`, or the budget."""
        if self.foreign is not None and FORMS[self.foreign.form].decides:
            return "reference"
        if self.foreign is None and _assigns(self.directory / "reference.py", "compare"):
            return "compare"
        return "budget" if self.tolerance.rtol is None else "allclose"

    @property
    def exact_outputs(self) -> list[str]:
        """The outputs and inouts that must be equal: their tolerance says so, or they hold whole numbers, bool or
        scales in every case.
        """

        def rounds(dtype: str) -> bool:
            chosen = [dtype] if dtype in DTYPES else [str(c.params[dtype]) for c in (*self.tests, *self.benchmarks)]
            return any(DTYPES[name].rounds for name in chosen)

        steps = {spec.name: self.tolerance.of_output(spec.name).off_by for spec in self.tensors if spec.role != "input"}
        dtypes = {spec.name: spec.dtype for spec in self.tensors}
        return [name for name, off_by in steps.items() if off_by == 0 or (off_by is None and not rounds(dtypes[name]))]

    def of_baseline(self, kernel: str) -> Problem:
        """What the baseline in the file of this name, without its suffix, computes: the problem, unless `[[baselines]]`
        says otherwise. Then it is the same cases with that kernel's arguments; nothing decides about its answers.
        """
        found = next((spec for spec in self.baselines if spec.name == kernel), None)
        return another(self, found) if found else self

    def baseline_label(self, kernel: str) -> str:
        """The name of a baseline in verdicts and tables: it says so if the kernel computes something else."""
        return kernel if self.of_baseline(kernel) is self else f"{kernel} (another computation)"

    def resolve(self, case: Case) -> ResolvedCase:
        """Compute the sizes, dtypes, fills, scalars and costs of a case whose sizes have been drawn.

        Raises:
            ProblemError: the case does not fit the problem. Never for the problem's own cases: construction tried them,
            and the extremes of drawn ones.
        """
        return resolve_case(self, case)

    def other_values(self, benchmark: ResolvedCase, device: DeviceKind) -> tuple[ResolvedCase, ...]:
        """A benchmark's case with the fills and options of each test of that device, under the test's name.

        A benchmark's own inputs are what a kernel usually gets. One that is right for them alone, for instance a
        softmax that overflows on large inputs, passes every timed call: the tests that it would fail have other sizes,
        by which it can tell them. So a benchmark is also tried, untimed, on what the tests hold.

        Only those that differ from the benchmark's own and from each other. Left out is what does not suit the
        benchmark's dtypes, and what could make its call invalid: indices beyond those that it has itself. A foreign
        reference draws all inputs by itself, so there are none.
        """
        if self.foreign is not None:
            return ()
        [of] = [case for case in self.benchmarks if case.name == benchmark.name]
        found = {_values(benchmark): benchmark}
        for test in self.tests:
            if device not in test.devices:
                continue
            given = {"name": test.name, "hidden": test.hidden, "fill": test.fill, "options": test.options}
            try:
                case = self.resolve(of.model_copy(update=given))
            except ProblemError:  # values that the benchmark's dtypes do not hold
                continue
            if all(_suits(other, own) for other, own in zip(case.tensors, benchmark.tensors, strict=True)):
                found.setdefault(_values(case), case)
        return tuple(case for case in found.values() if case is not benchmark)


def _assigns(file: Path, name: str) -> bool:
    """Whether a Python file defines the name, by its text alone: it is not run, and torch not imported."""
    try:
        table = symtable.symtable(outside.text(file), str(file), "exec")
        symbol = table.lookup(name)
        return symbol.is_assigned() or symbol.is_imported()
    except (OSError, ValueError, SyntaxError, KeyError):
        return False  # a file that cannot be read is reported when it is used


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
