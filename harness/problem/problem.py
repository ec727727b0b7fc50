"""A problem that can be graded: every key agrees with the others, and every case resolves. Trusted; no torch."""

from __future__ import annotations

import symtable
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from harness.files import outside
from harness.problem.checks import check
from harness.problem.dtypes import DTYPES
from harness.problem.resolve import ResolvedCase, resolve_case
from harness.problem.signature import signature
from harness.problem.spec import Case, ProblemSpec
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
        """The definition of a Python submission, and how it is called: `softmax(x) -> y`."""
        return signature(self)

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
        """The outputs and inouts that hold whole numbers, bool or scales in every case: the budget wants them equal."""

        def rounds(dtype: str) -> bool:
            chosen = [dtype] if dtype in DTYPES else [str(c.params[dtype]) for c in (*self.tests, *self.benchmarks)]
            return any(DTYPES[name].rounds for name in chosen)

        return [spec.name for spec in self.tensors if spec.role != "input" and not rounds(spec.dtype)]

    def resolve(self, case: Case) -> ResolvedCase:
        """Compute the sizes, dtypes, fills, scalars and costs of a case whose sizes have been drawn.

        Raises:
            ProblemError: the case does not fit the problem. Never for the problem's own cases: construction tried them,
            and the extremes of drawn ones.
        """
        return resolve_case(self, case)


def _assigns(file: Path, name: str) -> bool:
    """Whether a Python file defines the name, by its text alone: it is not run, and torch not imported."""
    try:
        table = symtable.symtable(outside.text(file), str(file), "exec")
        symbol = table.lookup(name)
        return symbol.is_assigned() or symbol.is_imported()
    except (OSError, ValueError, SyntaxError, KeyError):
        return False  # a file that cannot be read is reported when it is used
