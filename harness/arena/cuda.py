"""A CUDA device's memory. torch is imported where memory is made; beside its import a context is made.

The driver takes about 0.4 s for the primary context and holds no lock of Python's meanwhile, torch's import takes 2.3 s
and holds it: a thread does the one beside the other. Judge and runner both start with it.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.arena.vmm import VmmArena, VmmWindow


class CudaMemory:
    """Memory of CUDA's current device."""

    def warm(self) -> None:
        threading.Thread(target=_retain, daemon=True).start()

    def arena(self, nbytes: int, *, read_only: bool, in_host: bool) -> VmmArena:
        from harness.arena.vmm import VmmArena

        return VmmArena(nbytes, in_host=in_host)

    def window(self, nbytes: int, *, writable: bool, at: int, in_host: bool) -> VmmWindow:
        from harness.arena.vmm import VmmWindow

        return VmmWindow(nbytes, writable=writable, at=at, in_host=in_host)

    def free_deferred(self) -> None:
        from harness.arena.vmm import deferred

        deferred.free()

    def give_back(self) -> None:
        from harness.arena.vmm import give_back

        give_back()


def _retain() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return  # torch will say it better
    context, handle = ctypes.c_void_p(), ctypes.c_int()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
