"""Keeps a little physical device memory that is no longer used: the memory of the judge's closed arenas.

Memory allocated soon after other memory was released is slower for as long as it is used: on an H200 a copy reached
3.53 TB/s in it, and 3.89 TB/s in memory never used before. 6 GiB are as good as new 30 ms after their release, 42 GiB
after 60 to 100 ms, so the cause seems to be the driver clearing memory in the background. So a little memory is kept,
more is released all at once, and whoever allocates memory for calls that are timed first lets what was released settle
(docs/decisions/0006). Imports no module that imports PyTorch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from harness.errors import DeviceError

KEPT_BYTES = 2 << 30
_CLEARED_S, _CLEARED_S_PER_BYTE = 0.03, 0.003 / (1 << 30)


def most_kept_bytes(free_bytes: int, whole_bytes: int) -> int:
    """How much of a device's memory a process may keep between two steps: less if less than a third of it is free.

    A little is kept even then: on a device that other processes have filled, it would be released again and again.
    """
    return KEPT_BYTES if free_bytes >= whole_bytes // 3 else min(KEPT_BYTES, whole_bytes // 32)


class DeferredFree:
    """Handles of allocations, oldest first; `release` returns one to the driver.

    `spare` releases whatever else this process keeps for reuse, and returns how many bytes that was. Thread-safe.
    """

    def __init__(
        self,
        release: Callable[[Any], object],
        sleep: Callable[[float], object] = time.sleep,
        spare: Callable[[], int] = lambda: 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._release, self._sleep, self._spare, self._now = release, sleep, spare, now
        self._handles: list[Any] = []
        self._lock = threading.RLock()
        self._cleared_at = 0.0
        self.kept_bytes = 0

    def add(self, handle: Any, nbytes: int, most_bytes: int) -> None:
        """Keep an allocation that is no longer mapped anywhere; release all if that makes more than `most_bytes`."""
        with self._lock:
            self._handles.append(handle)
            self.kept_bytes += nbytes
            if self.kept_bytes > most_bytes:
                self.free()

    def give_back(self) -> None:
        """Release everything, and whatever else this process keeps for reuse."""
        with self._lock:
            self.free()
            self._note(self._spare())

    def settle(self) -> None:
        """Wait until all memory that was released is as good as new."""
        left_s = self._cleared_at - self._now()
        if left_s > 0:
            self._sleep(left_s)

    def allocate(self, create: Callable[[], Any]) -> Any:
        """A new handle from `create`; if out of memory, once more after everything kept has been released.

        Raises:
            DeviceError: still out of memory.
        """
        try:
            return create()
        except DeviceError:
            self.give_back()
            return create()

    def free(self) -> int:
        """Release everything at once; returns how many bytes that was."""
        with self._lock:
            while self._handles:
                self._release(self._handles.pop(0))
            released, self.kept_bytes = self.kept_bytes, 0
            self._note(released)
            return released

    def _note(self, released_bytes: int) -> None:
        """Remember when memory that was just released will have been cleared."""
        if released_bytes:
            begins = max(self._cleared_at, self._now() + _CLEARED_S)
            self._cleared_at = begins + released_bytes * _CLEARED_S_PER_BYTE
