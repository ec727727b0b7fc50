"""When the queued gradings of a pool end, as it was last computed: for a long queue it takes a while, and many ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

_LONG = 500  # jobs; a shorter queue is computed each time
_TIMES_AS_LONG = 20


class Forecast(NamedTuple):
    """How many gradings come before a queued one, and in how many nanoseconds it ends."""

    before: int
    ends_ns: int


class ForecastCache:
    """Keeps the forecast of a long queue for twenty times as long as it took to compute. Threads may share it."""

    def __init__(self) -> None:
        self._pools: dict[str, tuple[int, Mapping[str, Forecast]]] = {}
        self._computing = threading.Lock()  # of all who ask at once, one computes

    def of(self, pool: str, run: str, compute: Callable[[], Mapping[str, Forecast]]) -> Forecast:
        """The forecast of a run. One that is newer than what was computed comes last.

        Args:
            compute: the forecasts of all runs that are queued in the pool.
        """
        with self._computing:
            valid_until_ns, found = self._pools.get(pool, (0, {}))
            began = time.perf_counter_ns()
            if began > valid_until_ns or len(found) < _LONG:
                found = compute()
                ended = time.perf_counter_ns()
                self._pools[pool] = ended + _TIMES_AS_LONG * (ended - began), found
        return found.get(run) or Forecast(len(found), max((other.ends_ns for other in found.values()), default=0))
