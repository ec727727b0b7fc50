"""Allocates and maps physical device memory through the driver's virtual memory management. Does not use PyTorch.

`vmm` builds the arenas and windows of judge and runner on it. A launcher, which has no PyTorch, uses it directly.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

from harness.errors import DeviceError

POSIX = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_READ = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ
_READ_WRITE = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_DEVICE = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
_HOST = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
# Drivers may place small reservations at other addresses than requested: on an H100 32 MiB, but not 4 GiB.
_FIXED = 1 << 37


def check(result: tuple[Any, ...]) -> Any:
    """Unpack a driver call's (status, values...).

    Raises:
        DeviceError: the status is not CUDA_SUCCESS.
    """
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"CUDA driver: {getattr(result[0], 'name', result[0])}")
    return result[1] if len(result) == 2 else result[1:]


def create(nbytes: int, ordinal: int, *, in_host: bool = False) -> Any:
    """Allocate `nbytes` of physical memory that can be exported; returns its handle.

    It is memory of the device, or pinned memory of the host's NUMA node nearest to the device. `nbytes` must be a
    multiple of the granularity (`granules`).
    """
    return check(driver.cuMemCreate(nbytes, _properties(_location(ordinal, in_host=in_host)), 0))


def granules(nbytes: int, ordinal: int, *, in_host: bool = False) -> int:
    """Round `nbytes` up to a size that can be allocated and mapped for the device."""
    flag = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    memories = map(_properties, {_location(ordinal), _location(ordinal, in_host=in_host)})
    granule = max(int(check(driver.cuMemGetAllocationGranularity(memory, flag))) for memory in memories)
    return max(1, -(-nbytes // granule)) * granule


def check_host(ordinal: int) -> None:
    """Check that the device can read host memory that another process has exported.

    Raises:
        DeviceError: it cannot.
    """
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    status, able = driver.cuDeviceGetAttribute(attribute, ordinal)
    if status != driver.CUresult.CUDA_SUCCESS or not able:
        raise DeviceError(
            "this GPU's driver cannot share the host's memory, which memory = \"host\" in problem.toml needs",
            "grade it on another GPU, or with a driver for CUDA 12.2 or later",
        )


def reserve(nbytes: int, at: int = 0) -> int:
    """Reserve addresses, starting at `at`; 0: anywhere.

    Raises:
        DeviceError: the addresses are not free.
    """
    address = int(check(driver.cuMemAddressReserve(nbytes, 0, at, 0)))
    if at and address != at:
        check(driver.cuMemAddressFree(address, nbytes))
        raise DeviceError(f"the device addresses from {at:#x} on are taken")
    return address


def map_at(address: int, nbytes: int, handle: Any, ordinal: int, *, writable: bool) -> None:
    """Map physical memory at reserved addresses."""
    check(driver.cuMemMap(address, nbytes, 0, handle, 0))
    descriptor = driver.CUmemAccessDesc()
    descriptor.location.type = _DEVICE
    descriptor.location.id = ordinal
    descriptor.flags = _READ_WRITE if writable else _READ
    check(driver.cuMemSetAccess(address, nbytes, [descriptor], 1))


def imported(descriptor: int) -> Any:
    """Import an allocation that another process has exported; returns its handle."""
    return check(driver.cuMemImportFromShareableHandle(descriptor, POSIX))


class DeviceWindow:
    """A reserved range of device addresses, at which an allocation is mapped between `map` and `unmap`."""

    def __init__(self, nbytes: int, ordinal: int, *, writable: bool, at: int = 0, in_host: bool = False) -> None:
        self.nbytes, self._ordinal, self._writable = granules(nbytes, ordinal, in_host=in_host), ordinal, writable
        self._reserved = max(self.nbytes, _FIXED) if at else self.nbytes
        self.address = reserve(self._reserved, at)
        self._mapped = False

    def map(self, descriptor: int) -> None:
        handle = imported(descriptor)
        self.unmap()
        map_at(self.address, self.nbytes, handle, self._ordinal, writable=self._writable)
        self._mapped = True
        check(driver.cuMemRelease(handle))  # the mapping keeps the memory alive

    def unmap(self) -> None:
        if self._mapped:
            check(driver.cuMemUnmap(self.address, self.nbytes))
            self._mapped = False

    def close(self) -> None:
        if self.address:
            self.unmap()
            check(driver.cuMemAddressFree(self.address, self._reserved))
            self.address = 0


def _location(ordinal: int, *, in_host: bool = False) -> tuple[Any, int]:
    """The kind and number of a memory: the device's, or that of the host's NUMA node nearest to it."""
    if not in_host:
        return _DEVICE, ordinal
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID
    return _HOST, max(0, int(check(driver.cuDeviceGetAttribute(attribute, ordinal))))  # -1: there is no nearest node


def _properties(location: tuple[Any, int]) -> Any:
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type, properties.location.id = location
    properties.requestedHandleTypes = POSIX
    return properties
