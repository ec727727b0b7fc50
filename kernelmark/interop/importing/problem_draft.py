"""The parameters, options and tensors of a problem that is being drafted, each with a name of its own. Trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.problem.dtypes import DTYPES
from harness.problem.keys import Name
from kernelmark.interop.importing.answer import Answer, TensorFacts
from kernelmark.interop.importing.checkout import ForeignProblem, NotImportedError

_NAME: TypeAdapter[str] = TypeAdapter(Name)


@dataclass
class DraftedTensor:
    """A tensor of the problem, over all cases."""

    name: str
    role: str
    over_cases: tuple[TensorFacts, ...]


@dataclass
class ProblemDraft:
    """The parameters, options and tensors that are known so far."""

    problem: ForeignProblem
    answer: Answer
    parameters: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """The value in each case, by name."""
    options: list[dict[str, Any]] = field(default_factory=list)
    tensors: dict[str, DraftedTensor] = field(default_factory=dict)
    """The tensors by their id in the answer."""

    def parameter(self, values: Sequence[int | str], stem: str) -> str:
        """The parameter that has these values, which is made if there is none."""
        for name, known in self.parameters.items():
            if known == tuple(values):
                return name
        name = self.unused(stem, numbered=True)
        self.parameters[name] = tuple(values)
        return name

    def tensor(self, over_cases: Sequence[TensorFacts], name: str, role: str) -> DraftedTensor:
        """The tensor with these facts, which is made with a name like the given one if its id was not met before.

        Raises:
            NotImportedError: the format has no such tensor.
        """
        if len({facts.id for facts in over_cases}) != 1:
            raise NotImportedError("the same tensor is in two places of its data in some cases only")
        if len({facts.count is None for facts in over_cases}) != 1:
            raise NotImportedError(f"{name!r} is several tensors in some cases only")
        if len({len(facts.shape) for facts in over_cases}) != 1:
            raise NotImportedError(f"the number of dimensions of {name!r} differs from case to case")
        if unknown := next((facts.dtype for facts in over_cases if facts.dtype not in DTYPES), None):
            raise NotImportedError(f"the dtype of {name!r} is {unknown}, which the format does not have")
        key = over_cases[0].id
        if key not in self.tensors:
            self.tensors[key] = DraftedTensor(self.unused(name), role, tuple(over_cases))
        return self.tensors[key]

    def unused(self, wanted: str, *, numbered: bool = False) -> str:
        """A valid name that nothing has, like the wanted one."""
        taken = {*self.parameters, *(tensor.name for tensor in self.tensors.values())}
        taken |= {name for options in self.options for name in options}
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).lstrip("_0123456789")[:56] or "x"
        tries = ([] if numbered else [stem]) + [f"{stem}{number}" for number in range(len(taken) + 2)]
        return next(name for name in tries if name not in taken and valid(name))


def valid(name: str) -> bool:
    """Whether a parameter or tensor of a problem may have this name."""
    try:
        _NAME.validate_python(name)
    except ValidationError:
        return False
    return True
