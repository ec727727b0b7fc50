"""Puts what a call returned into the outputs that the judge gave it. Runs in the runner's process, untrusted.

A result that already is an output's memory costs nothing. In a recorded call, a result in memory that the call
allocated costs nothing either: the judge fetches it after the call. Any other is copied inside the call, on its stream,
so that a submission and a baseline pay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.arena.shapes import spanned
from harness.recording.schema import Returned
from harness.runner.kernel import CallError
from harness.shared.call import Form, FormError, names, parts
from harness.shared.carrier import assign, carrier
from harness.wire import commands

_NO_NUMBERS = (torch.bool, torch.float4_e2m1fn_x2)  # true and false; two numbers in one element


IsNew = Callable[[int, int], bool]
"""Whether the call has allocated the memory between two addresses."""


class Results:
    """The outputs for the results of one set's calls; `named` has all its tensors, and lists of them, by name."""

    def __init__(self, form: Form, named: Mapping[str, Any], *, converts: commands.Converts = "never") -> None:
        """`converts`: results of another dtype are refused; converted if the output's dtype holds their values, or is
        float32 and theirs float64; or always.
        """
        self._form, self._converts = form, converts
        self._outputs: dict[str, Any] = {name: named[name] for name in names(form)}
        flat = [t for output in self._outputs.values() for t in (output if isinstance(output, list) else [output])]
        self._ranges = [_range(tensor) for tensor in flat]

    def take(self, returned: Any, is_new: IsNew = lambda low, high: False) -> list[Returned]:
        """Put what was returned into the outputs, but leave results in new memory there, and return where they are.

        Raises:
            CallError: the results are not what the problem asks for.
        """
        pairs = [(output, value) for output, value in self._pairs(returned) if not _is_there(value, output)]
        left, moved = _parted(pairs, is_new)
        # A result may be in another output's memory, and must be read before that is written.
        read = [
            (output, carrier(value).clone() if _overlaps(_range(value), self._ranges) else value)
            for output, value in moved
        ]
        for output, value in read:
            assign(output, value)
        return left

    def _pairs(self, returned: Any) -> Iterator[tuple[Tensor, Tensor]]:
        """Every output with the result that belongs there, checked."""
        try:
            found = parts(returned, self._form, "what it returned")
        except FormError as error:
            raise CallError(str(error)) from None
        for name, output in self._outputs.items():
            value = found[name]
            if not isinstance(output, list):
                yield output, self._fitting(name, value, output)
                continue
            if not isinstance(value, list | tuple) or len(value) != len(output):
                got = f"{len(value)} values" if isinstance(value, list | tuple) else _kind(value)
                raise CallError(f"returned {got}, `{name}` is a list of {len(output)}")
            for number, (one, member) in enumerate(zip(output, value, strict=True)):
                yield one, self._fitting(f"{name}[{number}]", member, one)

    def _fitting(self, name: str, value: Any, output: Tensor) -> Tensor:
        if isinstance(value, Tensor) and self._takes(value.dtype, output.dtype):
            value = value.to(output.dtype)
        return _fitting(name, value, output)

    def _takes(self, got: torch.dtype, wanted: torch.dtype) -> bool:
        if self._converts == "widening":
            return _holds(wanted, got) or (got, wanted) == (torch.float64, torch.float32)
        return self._converts == "always"


def _holds(wanted: torch.dtype, got: torch.dtype) -> bool:
    """Whether every number of one type is also one of the wanted type, so that converting loses nothing."""
    if got is wanted or got in _NO_NUMBERS or wanted in _NO_NUMBERS:
        return got is wanted
    if wanted.is_floating_point or wanted.is_complex:
        most = torch.finfo(wanted)
        if not (got.is_floating_point or got.is_complex):
            return torch.iinfo(got).max * most.eps < 2
        own = torch.finfo(got)
        return own.eps >= most.eps and own.max <= most.max and wanted.is_complex >= got.is_complex
    if got.is_floating_point or got.is_complex:
        return False
    return torch.iinfo(wanted).min <= torch.iinfo(got).min and torch.iinfo(got).max <= torch.iinfo(wanted).max


def _parted(
    pairs: Sequence[tuple[Tensor, Tensor]], is_new: IsNew
) -> tuple[list[Returned], list[tuple[Tensor, Tensor]]]:
    """The results that stay in new memory, only the first of several in the same memory; and the others."""
    left: list[Returned] = []
    moved: list[tuple[Tensor, Tensor]] = []
    taken: list[tuple[int, int]] = []
    for output, value in pairs:
        low, high = _range(value)
        if _can_stay(value, output) and is_new(low, high) and not _overlaps((low, high), taken):
            taken.append((low, high))
            left.append(Returned(source=low, target=output.data_ptr(), nbytes=high - low))
        else:
            moved.append((output, value))
    return left, moved


def _overlaps(one: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(one[0] < end and start < one[1] for start, end in others)


def _is_there(value: Tensor, output: Tensor) -> bool:
    """Whether a result is the output itself; only then is it not copied."""
    return value.data_ptr() == output.data_ptr() and _laid_alike(value, output)


def _can_stay(value: Tensor, output: Tensor) -> bool:
    """Whether a copy of its memory, byte by byte, would be the output, and change nothing between its elements."""
    return value.numel() > 0 and _laid_alike(value, output) and spanned(value.shape, value.stride()) == value.numel()


def _laid_alike(value: Tensor, output: Tensor) -> bool:
    strides = zip(value.shape, value.stride(), output.stride(), strict=True)
    return all(size == 1 or its == wanted for size, its, wanted in strides) and not (value.is_conj() or value.is_neg())


def _fitting(name: str, value: Any, output: Tensor) -> Tensor:
    """The value, if it is a tensor like the output."""
    if not isinstance(value, Tensor):
        raise CallError(f"returned {_kind(value)}, `{name}` is a tensor of {_name(output.dtype)}")
    if value.dtype != output.dtype:
        raise CallError(f"returned {_name(value.dtype)}, `{name}` is {_name(output.dtype)}")
    if value.shape != output.shape:
        raise CallError(f"returned the shape {list(value.shape)}, `{name}` has {list(output.shape)}")
    if value.device != output.device:
        raise CallError(f"returned a tensor on {value.device}, `{name}` is on {output.device}")
    return value


def _range(tensor: Tensor) -> tuple[int, int]:
    """The addresses of its first byte, and after its last one."""
    start = tensor.data_ptr()
    return start, start + spanned(tensor.shape, tensor.stride()) * tensor.element_size()


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
