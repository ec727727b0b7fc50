"""Memory that judge and runner share by file descriptors, on CPU and CUDA. Both sides use this package.

An `Arena` is one physical allocation in the judge. A `Window` is a range of addresses reserved in the runner. Arenas
are mapped there one after another, so that calls that were prepared for these addresses find new memory. Input arenas
can only be mapped read-only, which the MMU enforces.

A new kind of device needs a module with both classes, and a branch below. This package does not use pydantic, since the
runner's sandbox contains it. Only `memfd` and `vmm` import torch, when memory is allocated.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Protocol

from harness.errors import DeviceError

if TYPE_CHECKING:
    import torch


class Arena(Protocol):
    """The judge's side: memory that the judge fills or reads."""

    nbytes: int
    bytes: torch.Tensor  # [nbytes] uint8 on the device

    def descriptor(self) -> int:
        """A file descriptor of the allocation. The arena owns it and closes it."""
        ...

    def close(self) -> None: ...


class Window(Protocol):
    """The runner's side: reserved addresses, at which an arena is mapped between `map` and `unmap`."""

    address: int

    def map(self, descriptor: int) -> None: ...
    def unmap(self) -> None: ...
    def tensor(
        self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()
    ) -> torch.Tensor: ...
    def close(self) -> None: ...


def warm_context(device: str) -> None:
    """Begin to create a CUDA device's context in a thread while torch is being imported; torch then uses it.

    The driver takes about 0.4 s and does not need the GIL; torch's import takes 2.3 s and holds the GIL.
    """
    if device == "cuda":
        threading.Thread(target=_retain_primary_context, daemon=True).start()


def _retain_primary_context() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return  # torch's own message is better
    context, handle = ctypes.c_void_p(), ctypes.c_int()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)


def make_arena(device: str, nbytes: int, *, read_only: bool, in_host: bool = False) -> Arena:
    """Allocate an arena of `nbytes` on the device.

    Args:
        read_only: whether the runner can only read it.
        in_host: whether it is in the host's memory, at addresses that the device can read.

    Raises:
        DeviceError: out of memory, or the device cannot read the host's memory.
    """
    try:
        if device == "cpu":
            from harness.arena.memfd import MemfdArena

            return MemfdArena(nbytes, read_only=read_only)
        from harness.arena.vmm import VmmArena

        return VmmArena(nbytes, in_host=in_host)
    except (OSError, DeviceError) as error:
        if isinstance(error, DeviceError) and error.remedy:
            raise
        raise DeviceError(
            f"no arena of {nbytes:,} bytes ({error})", "free some memory, or use a larger device"
        ) from error


def make_window(device: str, nbytes: int, *, writable: bool, at: int = 0, in_host: bool = False) -> Window:
    """Reserve `nbytes` of addresses on the device, at which arenas of that size will be mapped.

    Args:
        at: on a GPU the start address; 0: any.
        in_host: whether the arenas are in the host's memory.
    """
    if device == "cpu":
        from harness.arena.memfd import MemfdWindow

        return MemfdWindow(nbytes, writable=writable)
    from harness.arena.vmm import VmmWindow

    return VmmWindow(nbytes, writable=writable, at=at, in_host=in_host)


def free_deferred(device: str) -> None:
    """Release the memory of closed arenas, some of which is kept while a grading runs."""
    if device == "cuda":
        from harness.arena.vmm import deferred

        deferred.free()


def give_back(device: str) -> None:
    """Release GPU memory that this process keeps for reuse, if it is much, since another process may need it."""
    if device == "cuda":
        from harness.arena import vmm

        vmm.give_back()


def settle(device: str) -> None:
    """Wait until released GPU memory is as fast as new memory (docs/decisions/0006).

    Call this before memory for timed calls is allocated.
    """
    if device == "cuda":
        from harness.arena.vmm import deferred

        deferred.settle()
