"""What a replayed call counts for when the launcher's three clocks differ."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.timing.replayed.clocks import Clocks
from harness.wire import replies

APART = replies.Loaded(functions=(), event_extra_ns=2_900, span_extra_ns=40_000)
BUSY = replies.Loaded(functions=(), event_extra_ns=50_000_000, span_extra_ns=50_000_000)
LONGER, HOST = "in 40 of 40 calls events lasted longer", "the launcher's host waited 1,000,000 ns for what CUPTI says "
THEIRS_NS = 0.99 * 20_000 - 2_900 - 1_500  # what events say, less what they are apart


def calls(device_ns: int, event_ns: int, span_ns: int, count: int = 40) -> list[replies.Replayed]:
    return [replies.Replayed(device_ns=device_ns, event_ns=event_ns, span_ns=span_ns, nodes_ns=(device_ns,))] * count


@pytest.mark.parametrize(
    ("made", "apart", "counted_ns", "doubt"),
    [
        pytest.param(calls(5_000, 8_100, 50_000), APART, [5_000] * 40, "", id="as far apart as for our own kernel"),
        pytest.param(calls(0, 20_000, 65_000), APART, [THEIRS_NS] * 40, LONGER, id="events contradict no time"),
        pytest.param(calls(5_000, 20_000, 65_000), APART, [THEIRS_NS] * 40, LONGER, id="events contradict"),
        pytest.param(
            calls(10, 20, 1_000_000), APART, [0.99 * 1_000_000 - 2_900 - 1_500 - 80_000] * 40, f"{HOST}took 10 ns",
            id="both clocks of the device lie",
        ),
        pytest.param(
            calls(5_000, 1_000_000, 1_040_000), BUSY, [0.99 * 1_000_000 - 8_000 - 1_500] * 40, LONGER,
            id="a busy device lets events lie apart, within bounds",
        ),
        pytest.param(
            calls(5_000, 8_000, 1_000_000), BUSY, [0.99 * 1_000_000 - 8_000 - 1_500 - 140_000] * 40, f"{HOST}took 5,0",
            id="and the host's clock",
        ),
        pytest.param(
            [*calls(5_000, 8_000, 50_000, 30), *calls(5_000, 8_000, 5_000_000, 10)], APART, [5_000] * 40, "",
            id="the host is late in some calls",
        ),
        pytest.param(
            [*calls(5_000, 8_000, 50_000, 39), *calls(5_000, 80_000, 120_000, 1)], APART,
            [*[5_000] * 39, 0.99 * 80_000 - 4_400], "", id="one event is late",
        ),
    ],
)  # fmt: skip
def test_what_a_call_counts_for(made: Any, apart: replies.Loaded, counted_ns: list[float], doubt: str) -> None:
    found = Clocks.of(made, apart, nodes=1)
    assert found.counted_ns == [pytest.approx(each) for each in counted_ns]
    assert doubt in found.doubt
    assert bool(found.doubt) == bool(doubt)


def test_graphs_of_several_nodes_may_take_events_longer() -> None:
    longer = calls(600_000, 606_000 + 2_500, 640_000)
    assert not Clocks.of(longer, APART, nodes=56).doubt
    small = calls(6_000, 6_000 + 2_900 + 4_000, 50_000)
    assert Clocks.of(small, APART, nodes=1).doubt
    assert not Clocks.of(small, APART, nodes=9).doubt
