"""Makes a CUDA context while torch is still being imported; judge and runner both start with it.

The driver takes about 0.4 s for the primary context and holds no lock of Python's meanwhile, torch's import takes 2.3 s
and holds it: a thread does the one beside the other. Standard library only.
"""

from __future__ import annotations

import ctypes
import threading


def warm_context(device: str) -> None:
    """Begin to make the primary context of CUDA device 0, which torch will find made. Does nothing on a CPU."""
    if device == "cuda":
        threading.Thread(target=_retain, daemon=True).start()


def _retain() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return  # torch will say it better
    context, handle = ctypes.c_void_p(), ctypes.c_int()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
