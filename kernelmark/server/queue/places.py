"""The order of queues as it was last computed: that of a long one takes a while, and many ask for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_LONG = 500  # jobs; the order of fewer is computed each time
_TIMES_AS_LONG = 20


class Place(NamedTuple):
    """Where a queued grading is: how many come before it, and in how many nanoseconds it ends."""

    before: int
    ends_ns: int


@dataclass(frozen=True)
class Queue:
    """The places of a pool's queued runs."""

    places: Mapping[str, Place]

    def of(self, run: str) -> Place:
        """The place of a run; of one that is newer than the order, behind all."""
        last_ns = max((place.ends_ns for place in self.places.values()), default=0)
        return self.places.get(run) or Place(len(self.places), last_ns)


class Places:
    """Keeps the order of a long queue for twenty times as long as it took to compute. Threads may share it."""

    def __init__(self) -> None:
        self._queues: dict[str, tuple[int, Queue]] = {}

    def of(self, pool: str, compute: Callable[[], Queue]) -> Queue:
        """The order of a pool, computed anew unless that was a moment ago."""
        until_ns, queue = self._queues.get(pool, (0, None))
        began = time.perf_counter_ns()
        if queue is None or began > until_ns or len(queue.places) < _LONG:
            queue = compute()
            ended = time.perf_counter_ns()
            self._queues[pool] = ended + _TIMES_AS_LONG * (ended - began), queue
        return queue
