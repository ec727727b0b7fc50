"""Limits how many sandboxes of timed gradings a worker has on its GPU at a time. Trusted.

Each has a context there, whether it grades or waits. A job has two, and two more for each baseline: twenty jobs with a
baseline took all memory of an H100, and failed.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import deque
from collections.abc import Iterator

_CONTEXT_BYTES = 850 << 20  # on an H100 672 MiB of a launcher, 844 to 1150 MiB of a runner with torch


def sandboxes_in(free_bytes: int) -> float:
    """How many fit, leaving half of the free memory to tensors; no bound where a device has no memory of its own."""
    return max(2, free_bytes // 2 // _CONTEXT_BYTES) if free_bytes else math.inf


class Room:
    """Room for so many sandboxes, given to threads in the order in which they ask."""

    def __init__(self, sandboxes: float) -> None:
        self._all = self._free = sandboxes
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, sandboxes: int) -> Iterator[None]:
        """Room for that many, or all there is if they are more; waits until it is free."""
        taken = min(sandboxes, self._all)
        with self._changed:
            mine = object()
            self._waiting.append(mine)
            self._changed.wait_for(lambda: self._waiting[0] is mine and self._free >= taken)
            self._waiting.popleft()
            self._free -= taken
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += taken
                self._changed.notify_all()
