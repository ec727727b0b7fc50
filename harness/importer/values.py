"""Describes Python values as JSON: their structure, and the shape and dtype of each tensor in them. Untrusted.

    {"tensor": {"id": "data/0", "dtype": "float32", "shape": [2, 3], "strides": [3, 1]}}
    {"number": 3}, {"text": "mean"}, {"dtype": "float16"}, {"none": true}
    {"list": […]}, {"tuple": […]}, {"dict": {…}}, {"fields": {…}}
    {"dict": {"w{index}": {"tensor": {…, "count": 8}}}}    w0 to w7, if `harness.importer.numbered` folded them
    {"other": "KVCache"}    anything else, by the name of its type

The id of a tensor is the first place where it occurs, so the same tensor in two places has one id.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch

_DEPTH = 12
_VALUES = 5000
_TEXT = 1000
Tree = dict[str, Any]
"""A description."""


class ImportRefused(Exception):
    """The problem cannot be imported; the text says why."""


class Describer:
    """Describes the data of a call, then its result, so that a returned tensor keeps its id."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        """The tensors by id. References to them keep Python from reusing their addresses."""
        self._ids: dict[int, str] = {}
        self._left = _VALUES

    def describe(self, value: Any, place: str = "data", depth: int = 0) -> Tree:
        """Describe a value.

        Raises:
            ImportRefused: it is nested too deeply or too large.
        """
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            raise ImportRefused(f"its data has more than {_VALUES:,} values, or is nested more than {_DEPTH} deep")
        if isinstance(value, torch.Tensor):
            return self._tensor(value, place)
        if value is None:
            return {"none": True}
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return {"number": value} if abs(value) < 1 << 63 else {"other": "a number of more than 64 bits"}
        if isinstance(value, str) and len(value) <= _TEXT:
            return {"text": value}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        kind, members = _members(value)
        inner = {key: self.describe(member, f"{place}/{key}", depth + 1) for key, member in members.items()}
        if kind == "other":
            return {kind: type(value).__name__}
        return {kind: [*inner.values()] if kind in ("list", "tuple") else inner}

    def _tensor(self, tensor: torch.Tensor, place: str) -> Tree:
        if tensor.layout != torch.strided:
            return {"other": f"a tensor with the layout {tensor.layout}"}
        name = self._ids.setdefault(id(tensor), place)
        self.tensors[name] = tensor
        dtype = str(tensor.dtype).removeprefix("torch.")
        facts = {"id": name, "dtype": dtype, "shape": list(tensor.shape), "strides": list(tensor.stride())}
        return {"tensor": facts}


def _members(value: Any) -> tuple[str, Mapping[Any, Any]]:
    """The kind of a container, and its members; "other" for a value of an unknown type."""
    if type(value) is list:
        return "list", dict(enumerate(value))
    if type(value) in (tuple, torch.Size) or type(value).__module__ == "torch.return_types":
        return "tuple", dict(enumerate(value))
    if type(value) is dict and all(type(key) is str for key in value):
        return "dict", value
    if type(value) is SimpleNamespace:
        return "fields", vars(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | torch.nn.Module):
        return "fields", {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return "other", {}


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in a value, in order, without repetitions."""
    describer = Describer()
    describer.describe(value)
    return [*describer.tensors.values()]


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and content."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return torch.equal(*(tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (first, second)))


def leaves(tree: Tree) -> Iterator[tuple[str, Any]]:
    """The kinds and contents of the values in a description that are not containers, in order."""
    [(kind, inside)] = tree.items()
    if kind in ("list", "tuple", "dict", "fields"):
        for member in inside if isinstance(inside, list) else inside.values():
            yield from leaves(member)
    else:
        yield kind, inside


def tensor_facts(tree: Tree) -> list[dict[str, Any]]:
    """The descriptions of the tensors in a description, in order."""
    return [inside for kind, inside in leaves(tree) if kind == "tensor"]


def structure(tree: Tree) -> Any:
    """A description without the properties that may differ between cases: sizes, dtypes and numbers."""
    [(kind, inside)] = tree.items()
    if kind in ("list", "tuple"):
        return kind, [structure(member) for member in inside]
    if kind in ("dict", "fields"):
        return kind, [(key, structure(member)) for key, member in inside.items()]
    return (kind, len(inside["shape"])) if kind == "tensor" else kind
