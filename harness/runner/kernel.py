"""What a build gives: a kernel that prepares the calls of a `Bind`. Runs in the runner's process, untrusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from harness.arena.shapes import memory_of
from harness.shared.call import Form, made
from harness.wire import commands

OneCall = Callable[[], object]
"""One call on the tensors of one set: all that need not be done in its time has been done."""
Prepare = Callable[[Sequence[Any]], OneCall]
"""Makes the call of one set from its tensors, in the order of the arguments: those of a list are one, and an optional
one that the case lacks is None."""


class Kernel(Protocol):
    """A submission that is built."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.Argument]) -> Prepare:
        """Prepare calls; raises whatever the submission raises, or a `CallError`."""
        ...


class CallError(Exception):
    """The submission cannot be called as its problem does, or returns something else. The submission's fault."""


def scalar_values(bind: commands.Bind) -> list[int | float]:
    """The scalars, as Python passes them."""
    return [s.value if s.dtype == "int64" else float(s.value) for s in bind.scalars]


def named(declared: Sequence[commands.Argument], tensors: Sequence[Any]) -> dict[str, Any]:
    """The tensors of a set, and lists of them, by name; without those that the case lacks."""
    names = dict.fromkeys(each.group or each.name for each in declared)
    return dict(zip(names, (each for each in tensors if each is not None), strict=True))


def value_of(form: Form, named: Mapping[str, Any]) -> Any:
    """The value of a form, as Python passes it."""
    return made(form, named, lambda dtype: getattr(torch, dtype))


class Practice:
    """Our own kernel, used before there is a submission: it reads the inputs and writes the outputs."""

    def bind(self, bind: commands.Bind, declared: Sequence[commands.Argument]) -> Prepare:
        def prepare(arguments: Sequence[Any]) -> OneCall:
            given = (each for each in arguments if each is not None)
            tensors = [t for each in given for t in (each if isinstance(each, list) else [each])]
            memories = [memory_of(tensor).view(torch.uint8) for tensor in tensors]

            def call() -> None:
                for argument, memory in zip(declared, memories, strict=True):
                    if argument.writable:
                        memory.zero_()
                    else:
                        memory[::64].sum()

            return call

        return prepare
