"""Corrects the arithmetic of narrow floats in Triton's interpreter, so that it rounds and computes like a device.

The interpreter stores bfloat16 and float8 as unsigned integers. It truncates float32 to bfloat16, where a device rounds
to nearest even; it rounds float8 half up; and it adds the integers in which bfloat16 is stored. Called by
`interpreter`. Runs in the runner's process, untrusted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

_FLOAT8 = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
_KEPT_AS = {torch.bfloat16: torch.uint16, **dict.fromkeys(_FLOAT8.values(), torch.uint8)}
# Operations of the builder, and the index of the argument that has the type of the result.
_OPERATIONS = {
    "binary_op": 0,
    "unary_op": 0,
    "create_erf": 0,
    "create_rsqrt": 0,
    "ternary_op": 2,
    "create_fma": 2,
    "create_dot": 2,
}


def complete(module: Any) -> None:
    """Patch `triton.runtime.interpreter`."""
    builder, reduction = module.InterpreterBuilder, getattr(module, "ReduceScanOpInterface", None)
    replaced: list[tuple[Any, str, Callable[..., Any]]] = [
        (builder, "cast_impl", _bfloat16_cast),
        (builder, "create_fp_to_fp", _convert),
        (builder, "create_atomic_rmw", _without_bfloat16),
        (reduction, "apply", _reduce_in_float32),
        *((builder, name, partial(_in_float32, typed=typed)) for name, typed in _OPERATIONS.items()),
    ]
    for owner, name, replacement in replaced:
        if hasattr(owner, name):
            setattr(owner, name, replacement(module, getattr(owner, name)))


def rounded(values: np.ndarray[Any, Any], to: torch.dtype) -> np.ndarray[Any, Any]:
    """Round floats to nearest even in a narrower type; returns the unsigned integers in which it is stored.

    On a device float8 saturates: values that are too large become the largest value.
    """
    wide = torch.from_numpy(np.array(values, dtype=np.float32))
    if to in _FLOAT8.values():
        largest = torch.finfo(to).max
        wide = wide.clamp(-largest, largest)  # keeps NaN
    kept: np.ndarray[Any, Any] = wide.to(to).view(_KEPT_AS[to]).numpy()
    return kept


def widened(kept: np.ndarray[Any, Any], dtype: torch.dtype) -> np.ndarray[Any, Any]:
    """Convert floats that are stored as unsigned integers to float32."""
    wide: np.ndarray[Any, Any] = torch.from_numpy(np.array(kept)).view(dtype).float().numpy()
    return wide


def _torch_dtype(module: Any, dtype: Any) -> torch.dtype | None:
    """The torch dtype of a Triton type that is stored as integers; None for other types."""
    scalar = getattr(dtype, "scalar", None)
    return torch.bfloat16 if scalar == module.tl.bfloat16 else _FLOAT8.get(getattr(scalar, "name", ""))


def _bfloat16_cast(module: Any, cast_impl: Callable[..., Any]) -> Callable[..., Any]:
    """A cast between bfloat16 and any other type."""

    def cast(self: Any, source: Any, to: Any) -> Any:
        tl, data = module.tl, source.data
        if source.dtype.scalar == tl.bfloat16:
            source = module.TensorHandle(widened(data, torch.bfloat16), tl.float32)
        if to.scalar == tl.bfloat16:
            return module.TensorHandle(rounded(source.data, torch.bfloat16), tl.bfloat16)
        return cast_impl(self, source, to)

    return cast


def _convert(module: Any, create_fp_to_fp: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion between floats. The interpreter itself does any rounding other than to nearest even."""

    def convert(self: Any, source: Any, to: Any, rounding: Any) -> Any:
        narrow, wide = _torch_dtype(module, to), _torch_dtype(module, source.dtype)
        if rounding == module._ir.ROUNDING_MODE.RTZ or "fp8e4b15" in (to.scalar.name, source.dtype.scalar.name):
            return create_fp_to_fp(self, source, to, rounding)
        values = source.data if wide is None else widened(source.data, wide)
        if narrow is None:
            return module.TensorHandle(values.astype(module._get_np_dtype(to)), to.scalar)
        return module.TensorHandle(rounded(values, narrow), to.scalar)

    return convert


def _in_float32(module: Any, operation: Callable[..., Any], typed: int) -> Callable[..., Any]:
    """An operation on narrow floats, computed in float32; rounded if argument `typed` is a narrow float."""

    def compute(self: Any, *arguments: Any) -> Any:
        narrow = [_torch_dtype(module, a.dtype) if isinstance(a, module.TensorHandle) else None for a in arguments]
        if not any(narrow):
            return operation(self, *arguments)
        made = operation(self, *map(_wide(module), arguments, narrow))
        to = narrow[typed]
        if to is None or made.data.dtype != np.float32:  # a comparison makes bools
            return made
        return module.TensorHandle(rounded(made.data, to), arguments[typed].dtype.scalar)

    return compute


def _wide(module: Any) -> Callable[[Any, torch.dtype | None], Any]:
    return lambda a, dtype: a if dtype is None else module.TensorHandle(widened(a.data, dtype), module.tl.float32)


def _reduce_in_float32(module: Any, apply: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction or a scan of bfloat16, computed in float32 and rounded at the end."""
    tl = module.tl

    def cast(tensor: Any, to: Any) -> Any:
        return module.interpreter_semantic.cast(tensor, to)

    def reduce(self: Any, values: Any) -> Any:
        if not isinstance(values, tuple):
            return reduce(self, (values,))[0]
        narrow = [isinstance(value, tl.tensor) and value.dtype.scalar == tl.bfloat16 for value in values]
        pairs = zip(values, narrow, strict=True)
        wide = (cast(value, tl.float32) if is_narrow else value for value, is_narrow in pairs)
        made = apply(self, tuple(wide))
        kept = [*narrow, *[False] * len(made)]
        return tuple(cast(value, tl.bfloat16) if kept[i] else value for i, value in enumerate(made))

    return reduce


def _without_bfloat16(module: Any, atomic: Callable[..., Any]) -> Callable[..., Any]:
    def create_atomic_rmw(self: Any, operation: Any, pointers: Any, value: Any, *rest: Any) -> Any:
        if value.dtype.scalar == module.tl.bfloat16:
            raise NotImplementedError("an atomic operation on bfloat16")
        return atomic(self, operation, pointers, value, *rest)

    return create_atomic_rmw
