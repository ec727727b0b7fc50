"""Memory that is given back late: all of it together, and the clearing waited out."""

from __future__ import annotations

from harness.arena.retired import Retired

GIB = 1 << 30


def test_memory_is_kept_until_there_is_a_lot_and_then_released_together() -> None:
    released: list[str] = []
    slept: list[float] = []
    retired = Retired(released.append, slept.append)
    for name in "abc":
        retired.make_room(8 * GIB, most_bytes=30 * GIB)
        retired.add(name, 8 * GIB)
    assert (released, slept) == ([], []), "24 GiB are kept"
    retired.make_room(8 * GIB, most_bytes=30 * GIB)
    assert released == ["a", "b", "c"]
    assert retired.kept_bytes == 0
    [seconds] = slept
    assert 0.1 <= seconds <= 0.15, "42 GiB took the driver between 60 and 100 ms"
    retired.make_room(40 * GIB, most_bytes=30 * GIB)
    assert len(slept) == 1, "nothing is kept, so nothing is waited for"


def test_a_small_release_is_waited_for_as_well() -> None:
    slept: list[float] = []
    retired = Retired(lambda _: None, slept.append)
    retired.add("a", 6 * GIB)
    retired.make_room(GIB, most_bytes=GIB)
    assert 0.03 <= slept[0] <= 0.06


def test_the_end_of_a_grading_gives_everything_back_and_waits_for_nothing() -> None:
    released: list[str] = []
    slept: list[float] = []
    retired = Retired(released.append, slept.append)
    retired.add("a", 5)
    retired.add("b", 7)
    assert retired.give_back() == 12
    assert (released, slept, retired.kept_bytes) == (["a", "b"], [], 0)
    assert retired.give_back() == 0
