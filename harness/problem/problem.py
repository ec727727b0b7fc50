"""A problem that can be graded: its keys agree with each other, and all cases resolve. Trusted; imports no torch."""

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
    """A problem that can be graded.

    Raises:
        ProblemError: by the constructor, if keys contradict each other; the message names the key.
    """

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check(self)
        return self

    @property
    def signature(self) -> str:
        """How Python submissions are called: `softmax(x, y)`, `softmax(x) -> y`; for a class `Model(n)(x) -> y`."""
        if self.call.style == "writes":
            arguments = [*(spec.name for spec in self.tensors), *(spec.name for spec in self.scalars)]
            return f"{self.entry}({', '.join(arguments)})"
        called = forms(self)
        made = f"({', '.join(map(written, called.init))})" if self.call.style == "module" else ""
        return f"{self.entry}{made}({', '.join(map(written, called.arguments))}) -> {written(called.result)}"

    @property
    def without_hidden(self) -> Self:
        """The problem with only its visible tests; it keeps its hash."""
        shown = tuple(case for case in self.tests if not case.hidden)
        return self.model_copy(update={"tests": shown, "private": None})

    @property
    def decided_by(self) -> Decider:
        """What decides whether an answer is right: a foreign check, `compare`, `rtol` and `atol`, or the budget."""
        if self.foreign is not None and FORMS[self.foreign.form].decides:
            return "reference"
        if self.foreign is None and _assigns(self.directory / "reference.py", "compare"):
            return "compare"
        return "budget" if self.tolerance.rtol is None else "allclose"

    @property
    def exact_outputs(self) -> list[str]:
        """The outputs and inouts that must be equal, by their tolerance or because their dtype does not round."""

        def rounds(dtype: str) -> bool:
            chosen = [dtype] if dtype in DTYPES else [str(c.params[dtype]) for c in (*self.tests, *self.benchmarks)]
            return any(DTYPES[name].rounds for name in chosen)

        steps = {spec.name: self.tolerance.of_output(spec.name).off_by for spec in self.tensors if spec.role != "input"}
        dtypes = {spec.name: spec.dtype for spec in self.tensors}
        return [name for name, off_by in steps.items() if off_by == 0 or (off_by is None and not rounds(dtypes[name]))]

    def of_baseline(self, kernel: str) -> Problem:
        """The problem that a baseline solves, by the name of its file without the suffix.

        It is this problem, unless `[[baselines]]` says otherwise. Then it has the same cases with that kernel's
        arguments, and its answers are not checked.
        """
        found = next((spec for spec in self.baselines if spec.name == kernel), None)
        return another(self, found) if found else self

    def baseline_label(self, kernel: str) -> str:
        """The name of a baseline in verdicts and tables, which says if it computes something else."""
        return kernel if self.of_baseline(kernel) is self else f"{kernel} (another computation)"

    def resolve(self, case: Case) -> ResolvedCase:
        """Compute the sizes, dtypes, fills, scalars and costs of a case whose sizes have been drawn.

        Raises:
            ProblemError: the case does not fit the problem. This cannot happen for the problem's own cases, which the
                constructor has checked.
        """
        return resolve_case(self, case)

    def other_values(self, benchmark: ResolvedCase, device: DeviceKind) -> tuple[ResolvedCase, ...]:
        """A benchmark's case with the fills and options of each test of this device, under the test's name.

        A benchmark has usual inputs. A kernel that is right only for them, such as a softmax that overflows on large
        inputs, would pass every timed call, because it could recognize the tests by their other sizes. So a benchmark
        is also tried, untimed, on the values of tests.

        The result excludes values that equal the benchmark's own or those of another test, values that do not fit its
        dtypes, and values that could make its call invalid, such as larger indices than its own. It is empty if a
        foreign reference draws the inputs.
        """
        if self.foreign is not None:
            return ()
        [own_case] = [case for case in self.benchmarks if case.name == benchmark.name]
        found = {_values(benchmark): benchmark}
        for test in self.tests:
            if device not in test.devices:
                continue
            values = {"name": test.name, "hidden": test.hidden, "fill": test.fill, "options": test.options}
            try:
                case = self.resolve(own_case.model_copy(update=values))
            except ProblemError:  # the benchmark's dtypes cannot represent these values
                continue
            if all(_may_hold(other, own) for other, own in zip(case.tensors, benchmark.tensors, strict=True)):
                found.setdefault(_values(case), case)
        return tuple(case for case in found.values() if case is not benchmark)


def _assigns(file: Path, name: str) -> bool:
    """Whether a Python file defines a name. The file is not run, so torch is not imported."""
    try:
        table = symtable.symtable(outside.text(file), str(file), "exec")
        symbol = table.lookup(name)
        return symbol.is_assigned() or symbol.is_imported()
    except (OSError, ValueError, SyntaxError, KeyError):
        return False  # a file that cannot be read is reported when it is used


def _values(case: ResolvedCase) -> object:
    """A key of the values of a case; it differs if the values of two cases of the same sizes do."""
    fills = {tensor.list_name or tensor.name: tensor.fill for tensor in case.tensors if tensor.role != "output"}
    return tuple(fills.items()), tuple(sorted(case.options.items()))


def _may_hold(other: ResolvedTensor, own: ResolvedTensor) -> bool:
    """Whether a tensor may have these values: integers, which may be indices, must be in the benchmark's own range."""
    if other.role == "output" or other.fill == own.fill:
        return True
    if "generated" in (other.fill.kind, own.fill.kind):
        return False
    if DTYPES[own.dtype].family not in ("integer", "bool"):
        return True
    (least, greatest), (low, high) = own.fill.extent, other.fill.extent
    return least <= low and high <= greatest
