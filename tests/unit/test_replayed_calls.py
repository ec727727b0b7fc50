"""A replayed call in the verdict: the kernels that it launched, and its time when the three clocks differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.judge.timing.replayed.clocks import Clocks
from harness.judge.timing.replayed.kernels import launched
from harness.recording.schema import Blob, Edge, Empty, Image, Kernel, Memset, Recording
from harness.recording.windows import OUTPUTS
from harness.wire import replies

FIRST = Kernel(
    image=0, name="first", grid=(4, 1, 1), block=(256, 1, 1), cluster=(1, 1, 1), shared_bytes=1024, cooperative=False,
    priority=0, parameters=Blob(0, 8),
)  # fmt: skip
SECOND = replace(FIRST, name="second", grid=(1, 1, 1), parameters=None)
CLEAR = Memset(address=OUTPUTS.start, value=0, element_bytes=4, width=8, height=1, pitch=0)
FACTS = tuple(replies.Function(registers=n, local_bytes=8 * n, shared_bytes=100 * n) for n in (16, 32))
LOADED = replies.Loaded(functions=FACTS, event_extra_ns=0, span_extra_ns=0)


def recording(*nodes: Kernel | Memset | Empty, in_a_row: bool = True) -> Recording:
    edges = tuple(Edge(n, n + 1, "ended") for n in range(len(nodes) - 1)) if in_a_row else ()
    images = (Image(code=Blob(8, 8), variables=()),)
    return Recording(images=images, nodes=nodes, edges=edges, scratch_bytes=0, returned=())


def with_nodes(*nodes_ns: tuple[int, ...]) -> list[replies.Replayed]:
    return [replies.Replayed(device_ns=sum(times), event_ns=0, span_ns=0, nodes_ns=times) for times in nodes_ns]


def test_launches_that_differ_in_their_parameters_only_are_one_entry() -> None:
    again = replace(FIRST, parameters=Blob(16, 8))
    found = launched(recording(FIRST, SECOND, again), LOADED, with_nodes((10, 20, 30), (12, 22, 32), (11, 90, 31)))
    assert [(k.name, k.launches, k.time_ns) for k in found] == [("first", 2, 42), ("second", 1, 22)]
    assert [(k.registers, k.local_bytes, k.shared_bytes) for k in found] == [(16, 128, 1024 + 1600), (32, 256, 4224)]


def test_a_larger_grid_is_another_entry() -> None:
    found = launched(recording(FIRST, replace(FIRST, grid=(8, 1, 1))), LOADED, with_nodes((10, 20)))
    assert [(k.name, k.grid[0], k.registers) for k in found] == [("first", 4, 16), ("first", 8, 16)]


def test_memory_operations_have_times_but_are_not_kernels() -> None:
    found = launched(recording(CLEAR, Empty(), FIRST), LOADED, with_nodes((7, 10)))
    assert [(k.name, k.time_ns) for k in found] == [("first", 10)]


def test_kernels_that_may_overlap_have_no_times() -> None:
    found = launched(recording(FIRST, SECOND, in_a_row=False), LOADED, with_nodes((10, 20)))
    assert [k.time_ns for k in found] == [None, None]


def test_functions_without_facts_are_left_out() -> None:
    few = replace(LOADED, functions=FACTS[:1])
    assert [k.name for k in launched(recording(FIRST, SECOND), few, with_nodes((10, 20)))] == ["first"]


# ---- the three clocks

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
def test_the_time_that_counts_for_a_call(made: Any, apart: replies.Loaded, counted_ns: list[float], doubt: str) -> None:
    found = Clocks.of(made, apart, nodes=1)
    assert found.counted_ns == [pytest.approx(ns) for ns in counted_ns]
    assert doubt in found.doubt
    assert bool(found.doubt) == bool(doubt)


def test_graphs_of_several_nodes_may_take_events_longer() -> None:
    longer = calls(600_000, 606_000 + 2_500, 640_000)
    assert not Clocks.of(longer, APART, nodes=56).doubt
    small = calls(6_000, 6_000 + 2_900 + 4_000, 50_000)
    assert Clocks.of(small, APART, nodes=1).doubt
    assert not Clocks.of(small, APART, nodes=9).doubt
