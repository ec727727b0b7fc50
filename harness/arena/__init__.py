"""Memory that is handed over as a file descriptor, on CPU and CUDA alike, used on both sides of the trust line.

An `Arena` is one physical allocation in the judge. A `Window` is a range of addresses reserved in the runner, into
which one arena after another is mapped, so that calls prepared for its addresses find new memory there.
Input arenas can only be mapped read-only; the MMU enforces it.

A new kind of device is a module with both classes and a branch below. No pydantic: the runner's sandbox holds this
package. torch is imported by `memfd` and `vmm` only, when memory is made.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Protocol

from harness.errors import DeviceError

if TYPE_CHECKING:
    import torch


class Arena(Protocol):
    """The judge's side: memory it has filled, or will read."""

    nbytes: int
    bytes: torch.Tensor  # [nbytes] uint8 on the device

    def descriptor(self) -> int:
        """A file descriptor for the allocation; the arena owns it and closes it."""
        ...

    def close(self) -> None: ...


class Window(Protocol):
    """The runner's side: reserved addresses, with an arena behind them between `map` and `unmap`."""

    address: int

    def map(self, descriptor: int) -> None: ...
    def unmap(self) -> None: ...
    def tensor(
        self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()
    ) -> torch.Tensor: ...
    def close(self) -> None: ...


def warm_context(device: str) -> None:
    """Begin to make a CUDA device's context in a thread, while torch is still being imported; torch finds it made.

    The driver takes about 0.4 s for it without Python's lock, torch's import takes 2.3 s and holds the lock.
    """
    if device == "cuda":
        threading.Thread(target=_retain_primary_context, daemon=True).start()


def _retain_primary_context() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return  # torch explains it better
    context, handle = ctypes.c_void_p(), ctypes.c_int()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)


def make_arena(device: str, nbytes: int, *, read_only: bool, in_host: bool = False) -> Arena:
    """Allocate an arena of `nbytes` on the device; `read_only` says what the runner may do with it.

    `in_host`: in the host's memory, at addresses that the device can read.

    Raises:
        DeviceError: out of memory, or the device cannot read the host's.
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
    """Reserve `nbytes` of addresses on the device, into which arenas of that size will be mapped.

    `at`: on a GPU the start address, or 0 for any. `in_host`: whether the arenas are in the host's memory.
    """
    if device == "cpu":
        from harness.arena.memfd import MemfdWindow

        return MemfdWindow(nbytes, writable=writable)
    from harness.arena.vmm import VmmWindow

    return VmmWindow(nbytes, writable=writable, at=at, in_host=in_host)


def free_deferred(device: str) -> None:
    """Give the memory of closed arenas back to the device: a little is kept while a grading runs."""
    if device == "cuda":
        from harness.arena.vmm import deferred

        deferred.free()


def give_back(device: str) -> None:
    """Release what this process keeps of a GPU's memory for reuse, if that is much: another process may need it."""
    if device == "cuda":
        from harness.arena import vmm

        vmm.give_back()


def settle(device: str) -> None:
    """Before memory for timed calls is made: wait until what was released of a GPU's is as good as new
    (docs/decisions/0006).
    """
    if device == "cuda":
        from harness.arena.vmm import deferred

        deferred.settle()
