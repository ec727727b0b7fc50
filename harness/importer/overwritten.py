"""Watches what a reference does with one tensor of its data, on the meta device, where nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.importer.values import Describer, tensors_in

_OVERWRITE = (torch.ops.aten.copy_, torch.ops.aten.fill_, torch.ops.aten.zero_)


def overwritten(module: ModuleType, data: Any, name: str) -> bool:
    """Whether the reference reads nothing of the tensor with this id, nor returns what it was given in it."""
    describer = Describer()
    describer.describe(data)
    tensor = describer.tensors[name]
    with _Watch(tensor) as watch:
        result = module.ref_kernel(data)
    storage = tensor.untyped_storage()._cdata
    returned = any(made.untyped_storage()._cdata == storage for made in tensors_in(result))
    return not watch.read and (watch.written >= tensor.numel() or not returned)


class _Watch(TorchDispatchMode):
    """Sees every operation on the tensor and on its views, which share its storage."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's has no annotations
        self._storage = tensor.untyped_storage()._cdata
        self.read = False
        self.written = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for place, value in enumerate((*args, *(kwargs or {}).values())):
            stated = func._schema.arguments[place] if place < len(args) else None
            alias = stated.alias_info if stated is not None else None
            for tensor in self._own(value):
                if alias is not None and alias.is_write and func.overloadpacket in _OVERWRITE:
                    self.written += tensor.numel()
                elif alias is None or alias.is_write:  # else it becomes a view
                    self.read = True
        call: Callable[..., Any] = func
        return call(*args, **(kwargs or {}))

    def _own(self, value: Any) -> Iterator[torch.Tensor]:
        for member in value if isinstance(value, list | tuple) else (value,):
            if isinstance(member, torch.Tensor) and member.untyped_storage()._cdata == self._storage:
                yield member
