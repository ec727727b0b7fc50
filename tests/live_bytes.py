"""How many bytes of tensors and arenas are alive at once while something runs on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts, as a context, the memory of the tensors that operations make; `peak` is the most at the end of one."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self.others = 0
        """Bytes of memory that no operation made, such as arenas, for a test to change."""
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {self._address(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and (address := self._address(leaf)) and address not in given:
                storage = leaf.untyped_storage()
                self._made[address] = StorageWeakRef(storage), storage.nbytes()
        self.look()
        return result

    def look(self) -> int:
        """The bytes that are alive now."""
        self._made = {address: made for address, made in self._made.items() if not made[0].expired()}
        live = self.others + sum(nbytes for _, nbytes in self._made.values())
        self.peak = max(self.peak, live)
        return live

    @staticmethod
    def _address(tensor: torch.Tensor) -> int:
        return tensor.untyped_storage().data_ptr()
