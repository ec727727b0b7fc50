"""The parameters, options and tensors of a problem that is being drafted, each with a name of its own. Trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.problem.keys import Name
from kernelmark.interop.importing.answer import Answer, Tensor
from kernelmark.interop.importing.found import Found

_NAME: TypeAdapter[str] = TypeAdapter(Name)


@dataclass
class Argument:
    """A tensor of the problem, over all cases."""

    name: str
    role: str
    over_cases: tuple[Tensor, ...]


@dataclass
class Known:
    """What is known so far."""

    found: Found
    answer: Answer
    parameters: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """The value in each case, by name."""
    options: list[dict[str, Any]] = field(default_factory=list)
    tensors: dict[int, Argument] = field(default_factory=dict)
    """By their number in the answer."""

    def parameter(self, values: Sequence[int | str], stem: str) -> str:
        """The parameter that has these values, which is made if there is none."""
        for name, known in self.parameters.items():
            if known == tuple(values):
                return name
        name = self.unused(stem, numbered=True)
        self.parameters[name] = tuple(values)
        return name

    def unused(self, wanted: str, *, numbered: bool = False) -> str:
        """A valid name that nothing has, like the wanted one."""
        taken = {*self.parameters, *(each.name for each in self.tensors.values())}
        taken |= {name for options in self.options for name in options}
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).lstrip("_0123456789")[:56] or "x"
        tries = ([] if numbered else [stem]) + [f"{stem}{number}" for number in range(len(taken) + 2)]
        return next(name for name in tries if name not in taken and valid(name))


def valid(name: str) -> bool:
    try:
        _NAME.validate_python(name)
    except ValidationError:
        return False
    return True
