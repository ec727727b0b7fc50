"""Little memory is kept, more is released all at once, and timed memory waits until that has been cleared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.arena.deferred_free import DeferredFree
from harness.errors import DeviceError

GIB = 1 << 30
MOST = 2 * GIB


class Clock:
    """A clock that sleeping alone moves."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def noted(*spare: Callable[[], int]) -> tuple[DeferredFree, list[str], Clock]:
    """Memory of which is noted what was released, and how long that was waited for."""
    released, clock = list[str](), Clock()
    deferred = DeferredFree(released.append, clock.sleep, *spare or (lambda: 0,), now=lambda: clock.now)
    return deferred, released, clock


def test_little_memory_is_kept_and_more_is_released_together() -> None:
    deferred, released, clock = noted()
    for name in "ab":
        deferred.add(name, GIB, MOST)
    deferred.settle()
    assert (released, clock.slept, deferred.kept_bytes) == ([], [], 2 * GIB)
    deferred.add("c", 4 * GIB, MOST)
    assert (released, deferred.kept_bytes) == (["a", "b", "c"], 0)
    assert clock.slept == [], "memory that nothing is timed in need not be as good as new"
    deferred.settle()
    assert clock.slept == [pytest.approx(0.048)], "6 GiB take the driver 30 ms"
    deferred.settle()
    assert len(clock.slept) == 1, "nothing was released since then"


def test_what_is_kept_never_grows_with_the_number_of_arenas() -> None:
    deferred, _, _ = noted()
    most = 0
    for number in range(50):
        deferred.add(str(number), 700 << 20, MOST)
        most = max(most, deferred.kept_bytes)
    assert most <= MOST


def test_the_time_since_the_release_counts() -> None:
    deferred, _, clock = noted()
    deferred.add("a", 10 * GIB, MOST)
    clock.now += 0.05
    deferred.settle()
    assert clock.slept == [pytest.approx(0.01)]
    deferred.add("b", 10 * GIB, MOST)
    deferred.add("c", 32 * GIB, MOST)
    deferred.settle()
    assert 0.1 <= clock.slept[-1] <= 0.16, "42 GiB took the driver between 60 and 100 ms"


def test_the_end_of_a_grading_gives_everything_back() -> None:
    deferred, released, clock = noted()
    deferred.add("a", 5, MOST)
    deferred.add("b", 7, MOST)
    assert deferred.free() == 12
    assert (released, clock.slept, deferred.kept_bytes) == (["a", "b"], [], 0)
    assert deferred.free() == 0


def test_what_is_given_back_for_others_is_waited_for_before_timed_memory_is_made() -> None:
    deferred, released, clock = noted(lambda: 2 * GIB)
    deferred.add("a", 4 * GIB, 30 * GIB)
    deferred.give_back()
    assert (released, deferred.kept_bytes, clock.slept) == (["a"], 0, [])
    deferred.settle()
    assert clock.slept == [pytest.approx(0.048)]


@pytest.mark.parametrize("hoard", ["retired", "spare"])
def test_a_device_that_is_full_of_kept_memory_still_has_some(hoard: str) -> None:
    full = {"retired": False, "spare": False, hoard: True}

    def create() -> str:
        if any(full.values()):
            raise DeviceError("CUDA driver: CUDA_ERROR_OUT_OF_MEMORY")
        return "new"

    def spare() -> int:
        full["spare"] = False
        return GIB

    deferred = DeferredFree(lambda _: full.update(retired=False), lambda _: None, spare)
    deferred.add("old", GIB, MOST)
    assert deferred.allocate(create) == "new"
    assert deferred.kept_bytes == 0
    full["others"] = True
    with pytest.raises(DeviceError, match="OUT_OF_MEMORY"):
        deferred.allocate(create)
