"""Physical device memory that nobody uses any more, and that is not given back yet. The judge's arenas end here.

What is allocated soon after other memory was released is slower: on an H200 a copy reached 3.53 TB/s in it, for as
long as it was used, and 3.89 TB/s in memory that was never used before. 6 GiB are as new 30 ms after their release and
42 GiB between 60 and 100 ms after, so that it seems to be the driver's clearing that must have ended. Memory is
therefore kept until there is a lot of it, released together, and the clearing waited out (docs/decisions/0006).
Of other modules it needs none that imports PyTorch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from harness.errors import DeviceError

_CLEARED_S, _CLEARED_S_PER_BYTE = 0.03, 0.003 / (1 << 30)


class DeferredFree:
    """Handles of allocations, oldest first; `release` gives one back to the driver.

    `spare` gives back what else this process keeps for later use. Several threads may use it.
    """

    def __init__(
        self,
        release: Callable[[Any], object],
        sleep: Callable[[float], object] = time.sleep,
        spare: Callable[[], object] = lambda: None,
    ) -> None:
        self._release, self._sleep, self._spare = release, sleep, spare
        self._handles: list[Any] = []
        self._lock = threading.RLock()
        self.kept_bytes = 0

    def add(self, handle: Any, nbytes: int) -> None:
        """Keep an allocation that is mapped nowhere any more."""
        with self._lock:
            self._handles.append(handle)
            self.kept_bytes += nbytes

    def make_room(self, nbytes: int, most_bytes: int) -> None:
        """Before an allocation of `nbytes`: release everything if more than `most_bytes` would be kept and used."""
        with self._lock:
            if not self._handles or self.kept_bytes + nbytes <= most_bytes:
                return
            self._sleep(_CLEARED_S + self.free() * _CLEARED_S_PER_BYTE)

    def allocate(self, create: Callable[[], Any], nbytes: int, most_bytes: int) -> Any:
        """A new handle by `create`; where there is no memory, once more when nothing is kept for later any more.

        Raises:
            DeviceError: there is no memory even then.
        """
        self.make_room(nbytes, most_bytes)
        try:
            return create()
        except DeviceError:
            self._spare()
            self.make_room(nbytes, 0)
            return create()

    def free(self) -> int:
        """Release everything at once; returns how many bytes that were."""
        with self._lock:
            while self._handles:
                self._release(self._handles.pop(0))
            released, self.kept_bytes = self.kept_bytes, 0
            return released
