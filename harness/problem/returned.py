"""Checks the results of a problem's `reference` and `generate` against the case. Trusted; imports torch.

The strides of a returned tensor do not matter, since its elements are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from harness.errors import nearest
from harness.problem.dtypes import DTYPES
from harness.problem.elements import dtype_name
from harness.problem.resolve import ResolvedCase, ResolvedTensor
from harness.problem.spec import TensorSpec

Value = Tensor | list[Tensor]
DOUBLE = (torch.float64, torch.complex128)


class ReturnedFlaw(Exception):
    """The returned tensors are wrong: what is wrong with them, and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def inputs(returned: object, case: ResolvedCase, device: torch.device) -> dict[str, Tensor]:
    """The tensors that `generate` returned, by their names in the case: `x`, or `params[3]` for a member of a list.

    Raises:
        ReturnedFlaw: a name, number, shape, dtype or device is wrong, or a tensor whose fill is "generated" is missing.
    """
    if not isinstance(returned, Mapping):
        raise ReturnedFlaw(f"returned {type(returned).__name__}", "return a dict from names to tensors")
    wanted: dict[str, list[ResolvedTensor]] = {}
    for tensor in case.tensors:
        if tensor.role != "output":
            wanted.setdefault(tensor.list_name or tensor.name, []).append(tensor)
    generated: dict[str, Tensor] = {}
    for name, value in returned.items():
        if name in case.absent:
            if value is not None:
                raise ReturnedFlaw(f"returned `{name}`, which {case.name!r} lacks", "return None for it, or nothing")
            continue
        if name not in wanted:
            raise ReturnedFlaw(f"returned {name!r}, which is no input", nearest(str(name), wanted))
        members = _members(name, value, wanted[name], lambda tensor, spec: _input(tensor, spec, device))
        generated.update(zip((spec.name for spec in wanted[name]), members, strict=True))
    for name, tensors in wanted.items():
        if name not in returned and any(tensor.fill.kind == "generated" for tensor in tensors):
            remedy = f'return it, or give it another fill than {{ kind = "generated" }} in {case.name!r}'
            raise ReturnedFlaw(f"returned no `{name}`", remedy)
    return generated


def outputs(returned: object, specs: Sequence[TensorSpec], case: ResolvedCase, *, double: bool) -> dict[str, Value]:
    """The tensors that `reference` returned, by the names of the outputs and inouts.

    Floats are float64 if the inputs were (`double`), otherwise they are rounded to the output's own dtype.

    Raises:
        ReturnedFlaw: a number, shape or dtype is wrong.
    """
    values = returned if isinstance(returned, tuple) else (returned,)
    if len(values) != len(specs):
        names = ", ".join(spec.name for spec in specs)
        raise ReturnedFlaw(f"returned {len(values)} values for {len(specs)} outputs", f"return {names} in this order")
    named: dict[str, Value] = {}
    for spec, value in zip(specs, values, strict=True):
        wanted = [tensor for tensor in case.tensors if spec.name in (tensor.name, tensor.list_name)]
        members = _members(spec.name, value, wanted, lambda tensor, own: _output(tensor, own, double=double))
        named[spec.name] = members[0] if spec.count is None else members
    return named


def _members(
    name: str, value: object, wanted: list[ResolvedTensor], checked: Callable[[Tensor, ResolvedTensor], Tensor]
) -> list[Tensor]:
    """The members of a list, or the one tensor."""
    if wanted[0].list_name is None:
        value = [value]
    elif not isinstance(value, list | tuple):
        raise ReturnedFlaw(f"returned {type(value).__name__} for the list `{name}`", "return a list of tensors")
    elif len(value) != len(wanted):
        raise ReturnedFlaw(f"returned {len(value)} tensors for the list `{name}`", f"return {len(wanted)}")
    return [checked(_shaped(member, spec), spec) for member, spec in zip(value, wanted, strict=True)]


def _shaped(value: object, spec: ResolvedTensor) -> Tensor:
    if not isinstance(value, Tensor):
        raise ReturnedFlaw(f"returned {type(value).__name__} for `{spec.name}`", "return a tensor")
    if tuple(value.shape) != spec.shape:
        what = f"returned `{spec.name}` with the shape {list(value.shape)}"
        raise ReturnedFlaw(what, f"problem.toml says {list(spec.shape)}")
    return value


def _input(tensor: Tensor, spec: ResolvedTensor, device: torch.device) -> Tensor:
    if tensor.device.type != device.type:
        what = f"returned `{spec.name}` on {tensor.device.type} for a call on {device.type}"
        raise ReturnedFlaw(what, "make it with device=generator.device")
    if (dtype := dtype_name(tensor.dtype)) != spec.dtype:
        raise ReturnedFlaw(f"returned `{spec.name}` as {dtype}", f"problem.toml says {spec.dtype}")
    if tensor.layout is not torch.strided:
        raise ReturnedFlaw(f"returned `{spec.name}` as a sparse tensor", "return a dense one")
    return tensor.detach().resolve_conj().resolve_neg()  # torch may have deferred these operations


def _output(tensor: Tensor, spec: ResolvedTensor, *, double: bool) -> Tensor:
    dtype, family = dtype_name(tensor.dtype), DTYPES[spec.dtype].family
    what = f"returned `{spec.name}` as {dtype}"
    if family not in ("float", "scale", "complex"):
        if dtype != spec.dtype:
            raise ReturnedFlaw(what, f"problem.toml says {spec.dtype}: cast the result")
        return tensor
    if not (tensor.dtype.is_complex if family == "complex" else tensor.dtype.is_floating_point):
        raise ReturnedFlaw(what, f"problem.toml says {spec.dtype}")
    if double and tensor.dtype not in DOUBLE:
        raise ReturnedFlaw(f"{what} for float64 inputs", "compute in the dtype of the inputs")
    tensor = tensor.resolve_conj()  # torch may have deferred it
    return tensor if double else tensor.to(getattr(torch, spec.dtype))
