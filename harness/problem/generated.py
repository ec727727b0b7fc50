"""Checks what a problem's `generate` returned against the case. Trusted; imports torch.

The strides of a tensor do not matter, since its elements are copied to where the call finds them.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from harness.errors import nearest
from harness.problem.resolve import ResolvedCase, ResolvedTensor


class GeneratedFlaw(Exception):
    """What is wrong with the returned tensors, and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def checked(returned: object, case: ResolvedCase, device: torch.device) -> dict[str, Tensor]:
    """The tensors by their names in the case: `x`, or `params[3]` for a member of a list.

    Raises:
        GeneratedFlaw: a name, number, shape, dtype or device is wrong, or a tensor whose fill is "generated" is not
        there.
    """
    if not isinstance(returned, Mapping):
        raise GeneratedFlaw(f"returned {type(returned).__name__}", "return a dict from names to tensors")
    wanted: dict[str, list[ResolvedTensor]] = {}
    for tensor in case.tensors:
        if tensor.role != "output":
            wanted.setdefault(tensor.list_name or tensor.name, []).append(tensor)
    generated: dict[str, Tensor] = {}
    for name, value in returned.items():
        if name in case.absent:
            if value is not None:
                raise GeneratedFlaw(f"returned `{name}`, which {case.name!r} lacks", "return None for it, or nothing")
            continue
        if name not in wanted:
            raise GeneratedFlaw(f"returned {name!r}, which is no input", nearest(str(name), wanted))
        generated.update(_members(name, value, wanted[name], device))
    for name, tensors in wanted.items():
        if name not in returned and any(tensor.fill.kind == "generated" for tensor in tensors):
            remedy = f'return it, or give it another fill than {{ kind = "generated" }} in {case.name!r}'
            raise GeneratedFlaw(f"returned no `{name}`", remedy)
    return generated


def _members(name: str, value: object, wanted: list[ResolvedTensor], device: torch.device) -> dict[str, Tensor]:
    """One tensor, or the members of a list."""
    if wanted[0].list_name is None:
        return {name: _fitting(value, wanted[0], device)}
    if not isinstance(value, list | tuple):
        raise GeneratedFlaw(f"returned {type(value).__name__} for the list `{name}`", "return a list of tensors")
    if len(value) != len(wanted):
        raise GeneratedFlaw(f"returned {len(value)} tensors for the list `{name}`", f"return {len(wanted)}")
    return {spec.name: _fitting(member, spec, device) for member, spec in zip(value, wanted, strict=True)}


def _fitting(value: object, spec: ResolvedTensor, device: torch.device) -> Tensor:
    if not isinstance(value, Tensor):
        raise GeneratedFlaw(f"returned {type(value).__name__} for `{spec.name}`", "return a tensor")
    if value.device.type != device.type:
        what = f"returned `{spec.name}` on {value.device.type} for a call on {device.type}"
        raise GeneratedFlaw(what, "make it with device=generator.device")
    if tuple(value.shape) != spec.shape:
        what = f"returned `{spec.name}` with the shape {list(value.shape)}"
        raise GeneratedFlaw(what, f"problem.toml says {list(spec.shape)}")
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype != spec.dtype:
        raise GeneratedFlaw(f"returned `{spec.name}` as {dtype}", f"problem.toml says {spec.dtype}")
    if value.layout is not torch.strided:
        raise GeneratedFlaw(f"returned `{spec.name}` as a sparse tensor", "return a dense one")
    return value.detach().resolve_conj().resolve_neg()  # which torch may have put off
