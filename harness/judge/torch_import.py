"""Imports torch into the judge while its sandboxes start. Called by whoever grades; trusted."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import sys
from pathlib import Path


def import_torch() -> None:
    """Import what grades, and with it torch, at once if that was done before.

    Meanwhile no garbage is looked for: an import leaves next to none, and looking takes a seventh of its time.
    """
    if "torch" not in sys.modules:
        _load_libraries()
    collects = gc.isenabled()
    gc.disable()
    try:
        import harness.judge.grading  # noqa: F401  # and with it torch
    finally:
        if collects:
            gc.enable()


def _load_libraries() -> None:
    """Load the libraries of torch; what is missing, the import of torch explains.

    The import itself would keep Python's lock for as long as the loader takes, and the threads that start the sandboxes
    would wait: on two cores a container then started 0.3 s later.
    """
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        load = ctypes.CDLL(None).dlopen
        load.restype = ctypes.c_void_p
        load(os.fsencode(Path(torch.origin).parent / "lib" / "libtorch.so"), os.RTLD_NOW)
