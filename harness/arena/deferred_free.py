"""Keeps some device memory of the judge's closed arenas, instead of releasing it at once.

Memory that is allocated soon after other memory was released is slower for as long as it is used: on an H200 a copy
reached 3.53 TB/s in it, and 3.89 TB/s in memory that was never used before. Released memory is as fast as new after 30
ms (6 GiB) or 60 to 100 ms (42 GiB), so the driver seems to clear it in the background. So some memory is kept, larger
amounts are released together, and before memory for timed calls is allocated, `settle` waits (docs/decisions/0006).
Imports no module that imports PyTorch.
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
    """How much device memory a process may keep between two steps; less if less than a third of the memory is free.

    Some is kept even then: otherwise memory would be released again and again on a device that others have filled.
    """
    return KEPT_BYTES if free_bytes >= whole_bytes // 3 else min(KEPT_BYTES, whole_bytes // 32)


class DeferredFree:
    """Keeps handles of allocations that are no longer used. Thread-safe.

    `release` returns a handle to the driver. `spare` releases other memory that this process keeps for reuse, and
    returns its size in bytes.
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
        """Keep an allocation that is no longer mapped; release all if together they are more than `most_bytes`."""
        with self._lock:
            self._handles.append(handle)
            self.kept_bytes += nbytes
            if self.kept_bytes > most_bytes:
                self.free()

    def give_back(self) -> None:
        """Release everything, including other memory that this process keeps for reuse."""
        with self._lock:
            self.free()
            self._note(self._spare())

    def settle(self) -> None:
        """Wait until all released memory is as fast as new memory."""
        left_s = self._cleared_at - self._now()
        if left_s > 0:
            self._sleep(left_s)

    def allocate(self, create: Callable[[], Any]) -> Any:
        """Make a new handle by `create`; if out of memory, release everything and try once more.

        Raises:
            DeviceError: still out of memory.
        """
        try:
            return create()
        except DeviceError:
            self.give_back()
            return create()

    def free(self) -> int:
        """Release all kept allocations; returns their size in bytes."""
        with self._lock:
            while self._handles:
                self._release(self._handles.pop(0))
            released, self.kept_bytes = self.kept_bytes, 0
            self._note(released)
            return released

    def _note(self, released_bytes: int) -> None:
        """Remember when the driver will have cleared memory that was just released."""
        if released_bytes:
            begins = max(self._cleared_at, self._now() + _CLEARED_S)
            self._cleared_at = begins + released_bytes * _CLEARED_S_PER_BYTE
