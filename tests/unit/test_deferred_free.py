"""Memory is released late and all at once, and its clearing is waited for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.arena.deferred_free import DeferredFree
from harness.errors import DeviceError

GIB = 1 << 30


def noted(*spare: Callable[[], int]) -> tuple[DeferredFree[str], list[str], list[float]]:
    """Memory of which is noted what was released, and how long that was waited for."""
    released, slept = list[str](), list[float]()
    return DeferredFree(released.append, slept.append, *spare), released, slept


def test_memory_is_kept_until_there_is_a_lot_and_then_released_together() -> None:
    deferred, released, slept = noted()
    for name in "abc":
        deferred.make_room(8 * GIB, most_bytes=30 * GIB)
        deferred.add(name, 8 * GIB)
    assert (released, slept) == ([], []), "24 GiB are kept"
    deferred.make_room(8 * GIB, most_bytes=30 * GIB)
    assert released == ["a", "b", "c"]
    assert deferred.kept_bytes == 0
    [seconds] = slept
    assert 0.1 <= seconds <= 0.15, "42 GiB took the driver between 60 and 100 ms"
    deferred.make_room(40 * GIB, most_bytes=30 * GIB)
    assert len(slept) == 1, "nothing is kept, so nothing is waited for"


def test_the_end_of_a_grading_gives_everything_back_and_waits_for_nothing() -> None:
    deferred, released, slept = noted()
    deferred.add("a", 5)
    deferred.add("b", 7)
    assert deferred.free() == 12
    assert (released, slept, deferred.kept_bytes) == (["a", "b"], [], 0)
    assert deferred.free() == 0


def test_what_is_given_back_for_others_is_waited_for() -> None:
    deferred, released, slept = noted(lambda: 2 * GIB)
    deferred.add("a", 4 * GIB)
    deferred.give_back()
    assert (released, deferred.kept_bytes) == (["a"], 0)
    assert slept == [pytest.approx(0.048)], "6 GiB take the driver 30 ms"


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
    deferred.add("old", GIB)
    assert deferred.allocate(create, GIB, most_bytes=30 * GIB) == "new"
    assert deferred.kept_bytes == 0
    full["others"] = True
    with pytest.raises(DeviceError, match="OUT_OF_MEMORY"):
        deferred.allocate(create, GIB, most_bytes=30 * GIB)
