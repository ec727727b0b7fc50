"""Describes Python values as JSON: what they are made of, and the shape and dtype of each tensor in them.

    {"tensor": {"id": 0, "dtype": "float32", "shape": [2, 3], "strides": [3, 1]}}
    {"number": 3}, {"text": "mean"}, {"dtype": "float16"}, {"none": true}
    {"list": […]}, {"tuple": […]}, {"dict": {…}}, {"fields": {…}}
    {"dict": {"w{index}": {"tensor": {…, "count": 8}}}}    w0 to w7, if `harness.importer.numbered` folded them
    {"other": "KVCache"}    anything else, by the name of its type

The same tensor in two places has one id.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

_DEPTH = 12
_VALUES = 5000
_TEXT = 1000


class Refusal(Exception):
    """The problem cannot be imported; the text says why."""


class Describer:
    """Describes the data of a call, then its result, so that a tensor that is returned keeps its id."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        """By id. Holding them keeps their addresses from being used again."""
        self._ids: dict[int, int] = {}
        self._left = _VALUES

    def describe(self, value: Any, depth: int = 0) -> dict[str, Any]:
        """The description of a value.

        Raises:
            Refusal: it is too deep or too large.
        """
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            raise Refusal(f"its data has more than {_VALUES:,} values, or is nested more than {_DEPTH} deep")

        def inner(each: Any) -> dict[str, Any]:
            return self.describe(each, depth + 1)

        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if value is None:
            return {"none": True}
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return {"number": value} if abs(value) < 1 << 63 else {"other": "a number of more than 64 bits"}
        if isinstance(value, str) and len(value) <= _TEXT:
            return {"text": value}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if type(value) is list:
            return {"list": [inner(each) for each in value]}
        if type(value) in (tuple, torch.Size) or type(value).__module__ == "torch.return_types":
            return {"tuple": [inner(each) for each in value]}
        return _with_names(value, inner) or {"other": type(value).__name__}

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        if tensor.layout != torch.strided:
            return {"other": f"a tensor with the layout {tensor.layout}"}
        number = self._ids.setdefault(id(tensor), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(tensor)
        dtype = str(tensor.dtype).removeprefix("torch.")
        told = {"id": number, "dtype": dtype, "shape": list(tensor.shape), "strides": list(tensor.stride())}
        return {"tensor": told}


def others(tree: Any) -> Iterator[str]:
    """The types in a description that have no form."""
    if isinstance(tree, list):
        for each in tree:
            yield from others(each)
    elif isinstance(tree, dict):
        if isinstance(tree.get("other"), str):
            yield tree["other"]
        for key, each in tree.items():
            yield from others(each) if key != "tensor" else ()


def shape_of(tree: Any) -> Any:
    """A description without what may differ between cases: sizes, dtypes and numbers."""
    [(kind, inside)] = tree.items()
    if kind in ("list", "tuple"):
        return kind, [shape_of(each) for each in inside]
    if kind in ("dict", "fields"):
        return kind, [(key, shape_of(each)) for key, each in inside.items()]
    return (kind, len(inside["shape"])) if kind == "tensor" else kind


def _with_names(value: Any, inner: Callable[[Any], dict[str, Any]]) -> dict[str, Any] | None:
    """The description of a dict, or of an object that only holds values; None for anything else."""
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {key: inner(each) for key, each in value.items()}}
    if type(value) is SimpleNamespace:
        return {"fields": {key: inner(each) for key, each in vars(value).items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type | torch.nn.Module):
        return {"fields": {each.name: inner(getattr(value, each.name)) for each in dataclasses.fields(value)}}
    return None
