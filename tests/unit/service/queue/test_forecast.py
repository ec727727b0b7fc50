"""The forecast of a long queue is computed once for all who ask at the same time."""

from __future__ import annotations

import itertools
import threading

import pytest

from kernelmark.server.queue import forecast
from kernelmark.server.queue.forecast import Forecast, ForecastCache


def test_of_all_who_ask_for_a_long_queue_at_once_one_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast.time, "perf_counter_ns", itertools.count(0, 10**9).__next__)
    cache, computed, go, found = ForecastCache(), threading.Semaphore(0), threading.Event(), list[Forecast]()

    def compute() -> dict[str, Forecast]:
        computed.release()
        assert go.wait(60)
        return {str(number): Forecast(number, number * 10**9) for number in range(1000)}

    def ask(run: int) -> None:
        found.append(cache.of("pool", str(run), compute))

    threads = [threading.Thread(target=ask, args=(run,)) for run in (3, 999, 1000)]
    for thread in threads:
        thread.start()
    assert computed.acquire(timeout=60)
    assert not computed.acquire(timeout=0.2), "two compute the same"
    go.set()
    for thread in threads:
        thread.join()
    last = Forecast(1000, 999 * 10**9)
    assert sorted(found) == [Forecast(3, 3 * 10**9), Forecast(999, 999 * 10**9), last]
    assert not computed.acquire(blocking=False)
