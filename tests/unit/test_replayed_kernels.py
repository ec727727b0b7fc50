"""The kernels of a replayed call, as the verdict names them."""

from __future__ import annotations

from dataclasses import replace

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


def calls(*nodes_ns: tuple[int, ...]) -> list[replies.Replayed]:
    return [replies.Replayed(device_ns=sum(times), event_ns=0, span_ns=0, nodes_ns=times) for times in nodes_ns]


def test_launches_that_differ_in_their_parameters_only_are_one_entry() -> None:
    again = replace(FIRST, parameters=Blob(16, 8))
    found = launched(recording(FIRST, SECOND, again), LOADED, calls((10, 20, 30), (12, 22, 32), (11, 90, 31)))
    assert [(k.name, k.launches, k.time_ns) for k in found] == [("first", 2, 42), ("second", 1, 22)]
    assert [(k.registers, k.local_bytes, k.shared_bytes) for k in found] == [(16, 128, 1024 + 1600), (32, 256, 4224)]


def test_a_larger_grid_is_another_entry() -> None:
    found = launched(recording(FIRST, replace(FIRST, grid=(8, 1, 1))), LOADED, calls((10, 20)))
    assert [(k.name, k.grid[0], k.registers) for k in found] == [("first", 4, 16), ("first", 8, 16)]


def test_memory_operations_have_times_but_are_not_kernels() -> None:
    found = launched(recording(CLEAR, Empty(), FIRST), LOADED, calls((7, 10)))
    assert [(k.name, k.time_ns) for k in found] == [("first", 10)]


def test_kernels_that_may_overlap_have_no_times() -> None:
    found = launched(recording(FIRST, SECOND, in_a_row=False), LOADED, calls((10, 20)))
    assert [k.time_ns for k in found] == [None, None]


def test_functions_without_facts_are_left_out() -> None:
    few = replace(LOADED, functions=FACTS[:1])
    assert [k.name for k in launched(recording(FIRST, SECOND), few, calls((10, 20)))] == ["first"]
