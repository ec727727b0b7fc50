"""CUDA arenas: physical memory from `cuMemCreate`, exported as a POSIX file descriptor.

Follows the CUDA driver API's virtual memory management: the judge creates and maps read-write, the runner imports and
maps inputs with `PROT_READ`, so a store to an input is an illegal access in the runner's context and the judge's stays
healthy. Works across containers, since nothing but the descriptor is shared. Used by the judge (trusted) and the
runner (not).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch
from cuda.bindings import driver

from harness.arena.retired import Retired
from harness.errors import DeviceError

_POSIX = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_READ = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ
_READ_WRITE = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_DEVICE = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE


def check(result: tuple[Any, ...]) -> Any:
    """Unpack a driver call's (status, values...).

    Raises:
        DeviceError: the status is not CUDA_SUCCESS.
    """
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"CUDA driver: {getattr(result[0], 'name', result[0])}")
    return result[1] if len(result) == 2 else result[1:]


def _properties() -> Any:
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = _DEVICE
    properties.location.id = torch.cuda.current_device()
    properties.requestedHandleTypes = _POSIX
    return properties


def _granules(nbytes: int) -> int:
    flag = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    granule = int(check(driver.cuMemGetAllocationGranularity(_properties(), flag)))
    return max(1, -(-nbytes // granule)) * granule


def _map(address: int, nbytes: int, handle: Any, access: Any) -> None:
    check(driver.cuMemMap(address, nbytes, 0, handle, 0))
    descriptor = driver.CUmemAccessDesc()
    descriptor.location.type = _DEVICE
    descriptor.location.id = torch.cuda.current_device()
    descriptor.flags = access
    check(driver.cuMemSetAccess(address, nbytes, [descriptor], 1))


@cache
def _most_kept_bytes() -> int:
    """How much retired memory may lie about: a third of what is free when the first arena is made."""
    return int(torch.cuda.mem_get_info()[0]) // 3


class _Bytes:
    """What torch needs to see a range of device addresses as a tensor (CUDA Array Interface, version 3)."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


def _view(address: int, nbytes: int) -> torch.Tensor:
    return torch.as_tensor(_Bytes(address, nbytes), device=f"cuda:{torch.cuda.current_device()}")


retired = Retired(lambda handle: check(driver.cuMemRelease(handle)), spare=torch.cuda.empty_cache)


class VmmArena:
    """One physical allocation, mapped read-write here; what the runner may do, its own mapping decides."""

    def __init__(self, nbytes: int) -> None:
        torch.cuda.init()
        torch.empty(1, device="cuda")  # the driver calls below need torch's context to be current
        self.nbytes = _granules(nbytes)
        self._handle = retired.allocate(
            lambda: check(driver.cuMemCreate(self.nbytes, _properties(), 0)), self.nbytes, _most_kept_bytes()
        )
        self._address = int(check(driver.cuMemAddressReserve(self.nbytes, 0, 0, 0)))
        _map(self._address, self.nbytes, self._handle, _READ_WRITE)
        self.bytes = _view(self._address, self.nbytes)
        self._descriptor = int(check(driver.cuMemExportToShareableHandle(self._handle, _POSIX, 0)))

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
            retired.add(self._handle, self.nbytes)


class VmmWindow:
    """A reserved range of device addresses; an allocation is behind it between `map` and `unmap`."""

    def __init__(self, nbytes: int, *, writable: bool) -> None:
        self.nbytes = _granules(nbytes)
        self._access = _READ_WRITE if writable else _READ
        self.address = int(check(driver.cuMemAddressReserve(self.nbytes, 0, 0, 0)))
        self._mapped = False

    def map(self, descriptor: int) -> None:
        handle = check(driver.cuMemImportFromShareableHandle(descriptor, _POSIX))
        self.unmap()
        _map(self.address, self.nbytes, handle, self._access)
        self._mapped = True
        check(driver.cuMemRelease(handle))  # the mapping keeps the memory; the handle is not needed any more

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        kind = getattr(torch, dtype)
        nbytes = torch.empty(0, dtype=kind).element_size()
        for extent in shape:
            nbytes *= extent
        return _view(self.address + offset, nbytes).view(kind).view(shape)

    def unmap(self) -> None:
        if self._mapped:
            check(driver.cuMemUnmap(self.address, self.nbytes))
            self._mapped = False

    def close(self) -> None:
        if self.address:
            self.unmap()
            check(driver.cuMemAddressFree(self.address, self.nbytes))
            self.address = 0
