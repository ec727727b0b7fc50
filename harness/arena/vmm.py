"""CUDA arenas: physical memory from `cuMemCreate`, exported as POSIX file descriptors.

This uses the virtual memory management of the CUDA driver API. The judge allocates memory and maps it read-write. The
runner imports it and maps inputs with `PROT_READ`, so a store to an input is an illegal access in the runner's context,
which does not affect the judge's. It works across containers, since only the descriptor is shared. Used by the judge
(trusted) and the runner (not trusted).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch
from cuda.bindings import driver

from harness.arena.deferred_free import KEPT_BYTES, DeferredFree, most_kept_bytes
from harness.arena.mapping import POSIX, DeviceWindow, check, check_host, create, granules, map_at, reserve
from harness.arena.shapes import spanned, viewed


def _ordinal() -> int:
    return int(torch.cuda.current_device())


@cache
def _most_kept_bytes() -> int:
    """How much memory of closed arenas may be kept, so that short cases need not wait for memory to settle."""
    return min(KEPT_BYTES, int(torch.cuda.mem_get_info()[0]) // 3)


class _Bytes:
    """A range of device addresses, in the form that torch can view as a tensor (CUDA Array Interface, version 3)."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


def _view(address: int, nbytes: int) -> torch.Tensor:
    return torch.as_tensor(_Bytes(address, nbytes), device=f"cuda:{torch.cuda.current_device()}")


def _cached_bytes() -> int:
    """The size of freed tensors that PyTorch keeps for reuse."""
    stats = torch.cuda.memory_stats()  # once: it takes 0.2 ms
    return int(stats.get("reserved_bytes.all.current", 0) - stats.get("allocated_bytes.all.current", 0))


def _empty_cache() -> int:
    before = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    return int(before - torch.cuda.memory_reserved())


deferred = DeferredFree(lambda handle: check(driver.cuMemRelease(handle)), spare=_empty_cache)


def give_back() -> None:
    """Release kept arenas and PyTorch's cache, if they are large, or little of the device's memory is free."""
    if deferred.kept_bytes + _cached_bytes() > most_kept_bytes(*torch.cuda.mem_get_info()):
        deferred.give_back()


class VmmArena:
    """One physical allocation, mapped read-write in this process; the runner's mapping decides its own access rights.

    `in_host`: whether it is in the host's memory. It has device addresses, and torch treats it as device memory.
    """

    def __init__(self, nbytes: int, *, in_host: bool = False) -> None:
        torch.cuda.init()
        torch.empty(1, device="cuda")  # the driver calls below need torch's context to be current
        self._in_host = in_host
        if in_host:
            check_host(_ordinal())
        self.nbytes = granules(nbytes, _ordinal(), in_host=in_host)
        self._handle = self._allocated()
        self._address = reserve(self.nbytes)
        map_at(self._address, self.nbytes, self._handle, _ordinal(), writable=True)
        self.bytes = _view(self._address, self.nbytes)
        self._descriptor = int(check(driver.cuMemExportToShareableHandle(self._handle, POSIX, 0)))

    def _allocated(self) -> Any:
        if self._in_host:
            return create(self.nbytes, _ordinal(), in_host=True)
        return deferred.allocate(lambda: create(self.nbytes, _ordinal()))

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
            if self._in_host:
                check(driver.cuMemRelease(self._handle))
            else:
                deferred.add(self._handle, self.nbytes, _most_kept_bytes())


class VmmWindow(DeviceWindow):
    """A window of the current device that makes tensors."""

    def __init__(self, nbytes: int, *, writable: bool, at: int = 0, in_host: bool = False) -> None:
        super().__init__(nbytes, _ordinal(), writable=writable, at=at, in_host=in_host)

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()) -> torch.Tensor:
        kind = getattr(torch, dtype)
        nbytes = max(1, spanned(shape, strides)) * torch.empty(0, dtype=kind).element_size()
        return viewed(_view(self.address + offset, nbytes).view(kind), shape, strides)
