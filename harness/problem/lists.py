"""Converts lists of tensors to members by name, such as `params[3]`, and back."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from harness.problem import ResolvedCase

Tensors = dict[str, Tensor]


def grouped(named: Tensors, case: ResolvedCase) -> dict[str, Tensor | list[Tensor]]:
    """Gather the members of lists: `params[0]`, `params[1]` become the list `params`."""
    arguments: dict[str, Tensor | list[Tensor]] = {}
    for tensor in case.tensors:
        if tensor.name not in named:
            continue
        if tensor.list_name is None:
            arguments[tensor.name] = named[tensor.name]
        else:
            members = arguments.setdefault(tensor.list_name, [])
            assert isinstance(members, list)
            members.append(named[tensor.name])
    return arguments


def flatten(outputs: Mapping[str, Tensor | list[Tensor]]) -> Tensors:
    """Name the members of lists as the layout does: `params[3]`."""
    flat: Tensors = {}
    for name, value in outputs.items():
        if isinstance(value, list):
            flat.update({f"{name}[{i}]": member for i, member in enumerate(value)})
        else:
            flat[name] = value
    return flat
