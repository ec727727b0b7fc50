"""Loads NVIDIA's CUPTI, which reports what the driver does, by ctypes, so that nothing must be compiled.

The runner uses it to get the code images that the driver loads, the launcher to get the times of a graph's nodes. Uses
only the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import DeviceError


class Cupti:
    """The library, loaded into this process."""

    def __init__(self) -> None:
        for path in _places():
            with contextlib.suppress(OSError):
                self.library = ctypes.CDLL(str(path))
                return
        raise DeviceError("CUPTI (libcupti.so) is not installed", "install PyTorch for CUDA, or the CUDA toolkit")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of CUPTI.

        Raises:
            DeviceError: it returned something other than CUPTI_SUCCESS.
        """
        if status := getattr(self.library, name)(*arguments):
            raise DeviceError(f"CUPTI: {name} returned {status}")


def _places() -> Iterator[Path]:
    """Where CUPTI may be; first in PyTorch's own packages, since it is the version with which PyTorch was built."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(folder).glob("*/lib/libcupti.so.*"))
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    for pattern in ("lib64/libcupti.so.*", "extras/CUPTI/lib64/libcupti.so.*", "targets/*/lib/libcupti.so.*"):
        yield from sorted(toolkit.glob(pattern))
