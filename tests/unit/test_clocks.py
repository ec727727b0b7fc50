"""What a replayed call counts for when the launcher's three clocks differ."""

from __future__ import annotations

import pytest

from harness.judge.timing.replayed.clocks import Clocks
from harness.wire import replies

APART = replies.Loaded(functions=(), event_extra_ns=2_900, span_extra_ns=40_000)


TICK_NS = 32


def calls(device_ns: int, event_ns: int, span_ns: int, count: int = 40) -> list[replies.Replayed]:
    return [replies.Replayed(device_ns=device_ns, event_ns=event_ns, span_ns=span_ns, nodes_ns=(device_ns,))] * count


def test_cupti_counts_where_the_others_are_as_far_away_as_for_a_kernel_of_our_own() -> None:
    found = Clocks.of(calls(5_000, 8_100, 50_000), APART, nodes=1)
    assert found.counted_ns == [5_000] * 40
    assert not found.doubt


@pytest.mark.parametrize("device_ns", [0, 1, 5_000])
def test_a_time_that_events_contradict_is_theirs_less_what_they_are_apart(device_ns: int) -> None:
    found = Clocks.of(calls(device_ns, 20_000, 65_000), APART, nodes=1)
    assert found.counted_ns == [pytest.approx(0.99 * 20_000 - 2_900 - 1_500)] * 40
    assert "in 40 of 40 calls events lasted longer" in found.doubt


def test_where_both_device_clocks_lie_the_host_counts() -> None:
    found = Clocks.of(calls(10, 20, 1_000_000), APART, nodes=1)
    assert found.counted_ns[0] == pytest.approx(0.99 * 1_000_000 - 2_900 - 1_500 - 40_000 - 40_000)
    assert "the launcher's host waited 1,000,000 ns for what CUPTI says took 10 ns" in found.doubt


def test_a_busy_device_cannot_make_the_clocks_lie_apart_without_bound() -> None:
    saturated = replies.Loaded(functions=(), event_extra_ns=50_000_000, span_extra_ns=50_000_000)
    found = Clocks.of(calls(5_000, 1_000_000, 1_040_000), saturated, nodes=1)
    assert found.counted_ns[0] == pytest.approx(0.99 * 1_000_000 - 8_000 - 1_500)
    found = Clocks.of(calls(5_000, 8_000, 1_000_000), saturated, nodes=1)
    assert found.counted_ns[0] == pytest.approx(0.99 * 1_000_000 - 8_000 - 1_500 - 100_000 - 40_000)


def test_a_host_that_is_late_in_some_calls_changes_nothing() -> None:
    late = [*calls(5_000, 8_000, 50_000, 30), *calls(5_000, 8_000, 5_000_000, 10)]
    found = Clocks.of(late, APART, nodes=1)
    assert found.counted_ns == [5_000] * 40
    assert not found.doubt


def test_one_event_that_is_late_counts_and_is_no_doubt() -> None:
    found = Clocks.of([*calls(5_000, 8_000, 50_000, 39), *calls(5_000, 80_000, 120_000, 1)], APART, nodes=1)
    assert sorted(found.counted_ns)[-2:] == [5_000, pytest.approx(0.99 * 80_000 - 4_400)]
    assert not found.doubt


def test_graphs_of_several_nodes_may_take_events_longer() -> None:
    longer = calls(600_000, 606_000 + 2_500, 640_000)
    assert not Clocks.of(longer, APART, nodes=56).doubt
    small = calls(6_000, 6_000 + 2_900 + 4_000, 50_000)
    assert Clocks.of(small, APART, nodes=1).doubt
    assert not Clocks.of(small, APART, nodes=9).doubt
