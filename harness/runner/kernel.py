"""The result of a build: a kernel that prepares the calls of a `Bind`. Runs in the runner's process, untrusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from harness.arena.shapes import memory_of
from harness.shared.call import Form, made
from harness.wire import commands

OneCall = Callable[[], object]
"""One call on the tensors of one set, with everything prepared that need not be timed."""
Prepare = Callable[[Sequence[Any]], OneCall]
"""Makes the call of one set from its tensors, in the order of the arguments: a list of tensors counts as one, and an
optional tensor that the case lacks is None.
"""


class BuiltKernel(Protocol):
    """A submission that has been built."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        """Prepare calls; raises whatever the submission raises, or a `CallError`."""
        ...


class CallError(Exception):
    """The submission cannot be called as its problem does, or returns something else. The submission's fault."""


def scalar_values(bind: commands.Bind) -> list[int | float]:
    """The scalars, as Python passes them."""
    return [s.value if s.dtype == "int64" else float(s.value) for s in bind.scalars]


def named(declared: Sequence[commands.TensorArgument], tensors: Sequence[Any]) -> dict[str, Any]:
    """The tensors of a set, and lists of them, by name; without those that the case lacks."""
    names = dict.fromkeys(argument.group or argument.name for argument in declared)
    return dict(zip(names, (given for given in tensors if given is not None), strict=True))


def value_of(form: Form, named: Mapping[str, Any]) -> Any:
    """The value of a form, as Python passes it."""
    return made(form, named, lambda dtype: getattr(torch, dtype))


class Practice:
    """Our own kernel, for practice rounds before a submission is built: it reads the inputs and writes the outputs."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        def prepare(arguments: Sequence[Any]) -> OneCall:
            lists = (given if isinstance(given, list) else [given] for given in arguments if given is not None)
            memories = [memory_of(tensor).view(torch.uint8) for tensors in lists for tensor in tensors]

            def call() -> None:
                for argument, memory in zip(declared, memories, strict=True):
                    if argument.writable:
                        memory.zero_()
                    else:
                        memory[::64].sum()

            return call

        return prepare
