"""Keeps physical device memory that is no longer used but not yet released: the memory of the judge's closed arenas.

Memory allocated soon after other memory was released is slower for as long as it is used: on an H200 a copy reached
3.53 TB/s in it, and 3.89 TB/s in memory never used before. 6 GiB are as good as new 30 ms after their release, 42 GiB
after 60 to 100 ms, so the cause seems to be the driver clearing memory in the background. Memory is therefore kept
until there is a lot of it and released all at once, after which this process waits until it has been cleared
(docs/decisions/0006). Imports no module that imports PyTorch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from harness.errors import DeviceError

_CLEARED_S, _CLEARED_S_PER_BYTE = 0.03, 0.003 / (1 << 30)


class DeferredFree:
    """Handles of allocations, oldest first; `release` returns one to the driver.

    `spare` releases whatever else this process keeps for reuse, and returns how many bytes that was. Thread-safe.
    """

    def __init__(
        self,
        release: Callable[[Any], object],
        sleep: Callable[[float], object] = time.sleep,
        spare: Callable[[], int] = lambda: 0,
    ) -> None:
        self._release, self._sleep, self._spare = release, sleep, spare
        self._handles: list[Any] = []
        self._lock = threading.RLock()
        self.kept_bytes = 0

    def add(self, handle: Any, nbytes: int) -> None:
        """Keep an allocation that is no longer mapped anywhere."""
        with self._lock:
            self._handles.append(handle)
            self.kept_bytes += nbytes

    def make_room(self, nbytes: int, most_bytes: int) -> None:
        """Before an allocation of `nbytes`: release everything if more than `most_bytes` would be kept and used."""
        with self._lock:
            if not self._handles or self.kept_bytes + nbytes <= most_bytes:
                return
            self._settle(self.free())

    def give_back(self) -> None:
        """Release everything, and whatever else this process keeps for reuse."""
        with self._lock:
            self._settle(self.free() + self._spare())

    def _settle(self, released_bytes: int) -> None:
        """Wait until memory that was just released is as good as new."""
        self._sleep(_CLEARED_S + released_bytes * _CLEARED_S_PER_BYTE)

    def allocate(self, create: Callable[[], Any], nbytes: int, most_bytes: int) -> Any:
        """A new handle from `create`; if out of memory, once more after everything kept has been released.

        Raises:
            DeviceError: still out of memory.
        """
        self.make_room(nbytes, most_bytes)
        try:
            return create()
        except DeviceError:
            self._spare()
            self.make_room(nbytes, 0)
            return create()

    def free(self) -> int:
        """Release everything at once; returns how many bytes that was."""
        with self._lock:
            while self._handles:
                self._release(self._handles.pop(0))
            released, self.kept_bytes = self.kept_bytes, 0
            return released
