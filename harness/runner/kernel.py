"""The interface of a built kernel, which prepares the calls of a `Bind`. Runs in the runner's process, untrusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from harness.arena.shapes import memory_of
from harness.shared.call import Form, made
from harness.wire import commands

OneCall = Callable[[], object]
"""One call with its tensors. Everything that need not be timed is prepared."""
Prepare = Callable[[Sequence[Any]], OneCall]
"""Makes a call from its arguments, in order; a list of tensors is one argument, and an absent optional tensor is None.
"""


class BuiltKernel(Protocol):
    """A built submission."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        """Prepare calls; raises whatever the submission raises, or a `CallError`."""
        ...


class CallError(Exception):
    """The submission cannot be called as its problem requires, or returns something else, which is its own fault."""


def scalar_values(bind: commands.Bind) -> list[int | float]:
    """The scalars as Python values."""
    return [s.value if s.dtype == "int64" else float(s.value) for s in bind.scalars]


def named(declared: Sequence[commands.TensorArgument], tensors: Sequence[Any]) -> dict[str, Any]:
    """The tensors of a call, and lists of them, by name, without absent ones."""
    names = dict.fromkeys(argument.group or argument.name for argument in declared)
    return dict(zip(names, (tensor for tensor in tensors if tensor is not None), strict=True))


def value_of(form: Form, named: Mapping[str, Any]) -> Any:
    """The Python value of a form."""
    return made(form, named, lambda dtype: getattr(torch, dtype))


class Practice:
    """Our own kernel, for rounds before a submission is built. It reads the inputs and writes the outputs."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        def prepare(arguments: Sequence[Any]) -> OneCall:
            lists = (value if isinstance(value, list) else [value] for value in arguments if value is not None)
            memories = [memory_of(tensor).view(torch.uint8) for tensors in lists for tensor in tensors]

            def call() -> None:
                for argument, memory in zip(declared, memories, strict=True):
                    if argument.writable:
                        memory.zero_()
                    else:
                        memory[::64].sum()

            return call

        return prepare
