"""Imports torch into the judge while its sandboxes start. Called by `Grader` and by resident workers; trusted."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import sys
from pathlib import Path


def import_torch() -> None:
    """Import the grading code, and with it torch; returns at once if that was done before.

    The garbage collector is off during the import: there is next to no garbage, and looking for it takes a seventh of
    the time.
    """
    if "torch" not in sys.modules:
        _load_libraries()
    collects = gc.isenabled()
    gc.disable()
    try:
        import harness.judge.grading  # noqa: F401
    finally:
        if collects:
            gc.enable()


def _load_libraries() -> None:
    """Load torch's libraries. If one is missing, the import of torch explains it.

    The import itself would hold the GIL while the libraries load, and the threads that start the sandboxes would wait:
    on two cores a container then started 0.3 s later.
    """
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        load = ctypes.CDLL(None).dlopen
        load.restype = ctypes.c_void_p
        load(os.fsencode(Path(torch.origin).parent / "lib" / "libtorch.so"), os.RTLD_NOW)
