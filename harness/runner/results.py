"""Puts the returned results of a call into the outputs. Runs in the runner's process, untrusted.

A result that is already in an output's memory costs nothing. In a recorded call, a result in memory that the call
allocated costs nothing either, since the judge fetches it after the call. Any other result is copied inside the call,
on its stream, so that a submission and a baseline pay the same.
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
from harness.shared.layouts import ROW_MAJOR, layout_of, strides_of
from harness.wire import commands

_NO_NUMBERS = (torch.bool, torch.float4_e2m1fn_x2)  # an element is not a number, or is two numbers


IsNew = Callable[[int, int], bool]
"""Whether the call has allocated the memory between two addresses."""


class Results:
    """The outputs of a call, into which results are put."""

    def __init__(
        self,
        form: Form,
        named: Mapping[str, Any],
        *,
        converts: commands.Converts = "never",
        allowed: Mapping[str, Sequence[str]] = {},
        chosen: dict[str, str] | None = None,
    ) -> None:
        """Prepare the outputs of a call.

        Args:
            form: the form of the result.
            named: all tensors of the call, and lists of them, by name.
            converts: whether results of another dtype are converted. "never": they are refused. "widening": if the
                output's dtype can represent their values, or they are float64 for a float32 output. "always".
            allowed: the layouts besides row-major that results may have. Others are copied into rows.
            chosen: the layouts that these results had in the first call. All calls share them, and copy other results.
        """
        self._allowed, self._chosen = allowed, {} if chosen is None else chosen
        self._form, self._converts = form, converts
        self._outputs: dict[str, Any] = {name: named[name] for name in names(form)}
        flat = [t for output in self._outputs.values() for t in (output if isinstance(output, list) else [output])]
        self._ranges = [_range(tensor) for tensor in flat]

    def take(self, returned: Any, is_new: IsNew = lambda low, high: False) -> list[Returned]:
        """Put the results into the outputs; results in new memory stay there, and their places are returned.

        Raises:
            CallError: the results are not what the problem requires.
        """
        pairs = [(output, value) for output, value in self._pairs(returned) if not _is_output(value, output)]
        left, moved = _split_by_memory(pairs, is_new)
        # A result may be in the memory of another output, and must be read before that output is written.
        read = [
            (output, carrier(value).clone() if _overlaps(_range(value), self._ranges) else value)
            for output, value in moved
        ]
        for output, value in read:
            assign(output, value)
        return left

    def _pairs(self, returned: Any) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield every output with its checked result."""
        try:
            found = parts(returned, self._form, "what it returned")
        except FormError as error:
            raise CallError(str(error)) from None
        for name, output in self._outputs.items():
            value = found[name]
            if not isinstance(output, list):
                checked = self._checked(name, value, output)
                yield self._laid_like(checked, name, output), checked
                continue
            if not isinstance(value, list | tuple) or len(value) != len(output):
                got = f"{len(value)} values" if isinstance(value, list | tuple) else _kind(value)
                raise CallError(f"returned {got}, `{name}` is a list of {len(output)}")
            for number, (target, member) in enumerate(zip(output, value, strict=True)):
                yield target, self._checked(f"{name}[{number}]", member, target)

    def _checked(self, name: str, value: Any, output: Tensor) -> Tensor:
        if isinstance(value, Tensor) and self._converts_from(value.dtype, output.dtype):
            value = value.to(output.dtype)
        return _checked(name, value, output)

    def _laid_like(self, value: Tensor, name: str, output: Tensor) -> Tensor:
        """The output in the layout that its result had in the first call, if it may have several."""
        if name not in self._allowed:
            return output
        layout = layout_of(value.shape, value.stride(), self._allowed[name]) or ROW_MAJOR
        return output.as_strided(output.shape, strides_of(self._chosen.setdefault(name, layout), output.shape))

    def _converts_from(self, got: torch.dtype, wanted: torch.dtype) -> bool:
        if self._converts == "widening":
            return _can_represent(wanted, got) or (got, wanted) == (torch.float64, torch.float32)
        return self._converts == "always"


def _can_represent(wanted: torch.dtype, got: torch.dtype) -> bool:
    """Whether the wanted dtype can represent every value of the other dtype."""
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


def _split_by_memory(
    pairs: Sequence[tuple[Tensor, Tensor]], is_new: IsNew
) -> tuple[list[Returned], list[tuple[Tensor, Tensor]]]:
    """Split the results into those that can stay in new memory (at most one in the same memory), and the others."""
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


def _overlaps(part: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(part[0] < end and start < part[1] for start, end in others)


def _is_output(value: Tensor, output: Tensor) -> bool:
    """Whether a result already is the output."""
    return value.data_ptr() == output.data_ptr() and _same_layout(value, output)


def _can_stay(value: Tensor, output: Tensor) -> bool:
    """Whether copying the result's memory byte by byte would give the output, and nothing between its elements."""
    return value.numel() > 0 and _same_layout(value, output) and spanned(value.shape, value.stride()) == value.numel()


def _same_layout(value: Tensor, output: Tensor) -> bool:
    strides = zip(value.shape, value.stride(), output.stride(), strict=True)
    same = all(size == 1 or stride == wanted for size, stride, wanted in strides)
    return same and not (value.is_conj() or value.is_neg())


def _checked(name: str, value: Any, output: Tensor) -> Tensor:
    """The value; raises `CallError` unless it is a tensor like the output."""
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
    """The start and end addresses of a tensor's memory."""
    start = tensor.data_ptr()
    return start, start + spanned(tensor.shape, tensor.stride()) * tensor.element_size()


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
