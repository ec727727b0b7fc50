"""CUDA arenas: physical memory from `cuMemCreate`, exported as a POSIX file descriptor.

Follows the CUDA driver API's virtual memory management: the judge creates and maps read-write, the runner imports and
maps inputs with `PROT_READ`, so a store to an input is an illegal access in the runner's context and the judge's
context is unaffected. Works across containers, since only the descriptor is shared. Used by the judge (trusted)
and the runner (not).
"""

from __future__ import annotations

import os
from functools import cache

import torch
from cuda.bindings import driver

from harness.arena.deferred_free import DeferredFree
from harness.arena.mapping import POSIX, Window, check, create, granules, map_at, reserve
from harness.arena.shapes import spanned, viewed


def _ordinal() -> int:
    return int(torch.cuda.current_device())


@cache
def _most_kept_bytes() -> int:
    """How much unused memory may be kept: a third of what is free when the first arena is made."""
    return int(torch.cuda.mem_get_info()[0]) // 3


class _Bytes:
    """What torch needs to view a range of device addresses as a tensor (CUDA Array Interface, version 3)."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


def _view(address: int, nbytes: int) -> torch.Tensor:
    return torch.as_tensor(_Bytes(address, nbytes), device=f"cuda:{torch.cuda.current_device()}")


deferred = DeferredFree(lambda handle: check(driver.cuMemRelease(handle)), spare=torch.cuda.empty_cache)


class VmmArena:
    """One physical allocation, mapped read-write here; the runner's access rights follow from its own mapping."""

    def __init__(self, nbytes: int) -> None:
        torch.cuda.init()
        torch.empty(1, device="cuda")  # the driver calls below need torch's context to be current
        self.nbytes = granules(nbytes, _ordinal())
        self._handle = deferred.allocate(lambda: create(self.nbytes, _ordinal()), self.nbytes, _most_kept_bytes())
        self._address = reserve(self.nbytes)
        map_at(self._address, self.nbytes, self._handle, _ordinal(), writable=True)
        self.bytes = _view(self._address, self.nbytes)
        self._descriptor = int(check(driver.cuMemExportToShareableHandle(self._handle, POSIX, 0)))

    def descriptor(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            del self.bytes
            torch.cuda.synchronize()
            check(driver.cuMemUnmap(self._address, self.nbytes))
            check(driver.cuMemAddressFree(self._address, self.nbytes))
            deferred.add(self._handle, self.nbytes)


class VmmWindow(Window):
    """A window of the current device whose contents are tensors."""

    def __init__(self, nbytes: int, *, writable: bool, at: int = 0) -> None:
        super().__init__(nbytes, _ordinal(), writable=writable, at=at)

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()) -> torch.Tensor:
        kind = getattr(torch, dtype)
        nbytes = max(1, spanned(shape, strides)) * torch.empty(0, dtype=kind).element_size()
        return viewed(_view(self.address + offset, nbytes).view(kind), shape, strides)
