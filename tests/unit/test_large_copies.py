"""A large copy becomes parts that cover it, one after the other, between what came before it and what waits for it."""

from __future__ import annotations

from dataclasses import replace

from harness.recording import Edge, Empty, Memcpy, Node
from harness.runner.large_copies import PART_BYTES, in_parts

MEMCPY = Memcpy(
    source=1 << 40,
    target=1 << 41,
    width=2 * PART_BYTES + 1,
    height=1,
    depth=1,
    source_pitch=0,
    target_pitch=0,
    source_height=0,
    target_height=0,
)
AROUND = (Edge(0, 1, "ended"), Edge(1, 2, "ended"), Edge(0, 2, "triggered"))


def test_the_parts_of_a_copy_follow_one_another() -> None:
    nodes, edges = in_parts([Empty(), MEMCPY, Empty()], AROUND)
    assert nodes == [
        Empty(),
        replace(MEMCPY, width=PART_BYTES),
        replace(MEMCPY, source=MEMCPY.source + PART_BYTES, target=MEMCPY.target + PART_BYTES, width=PART_BYTES),
        replace(MEMCPY, source=MEMCPY.source + 2 * PART_BYTES, target=MEMCPY.target + 2 * PART_BYTES, width=1),
        Empty(),
    ]
    assert sorted(edges, key=lambda edge: (edge.before, edge.after)) == [
        Edge(0, 1, "ended"),
        Edge(0, 4, "triggered"),
        Edge(1, 2, "ended"),
        Edge(2, 3, "ended"),
        Edge(3, 4, "ended"),
    ]


def test_other_nodes_stay_as_they_are() -> None:
    rows = replace(MEMCPY, height=2, source_pitch=MEMCPY.width, target_pitch=MEMCPY.width)
    given: list[Node] = [Empty(), replace(MEMCPY, width=PART_BYTES), rows]
    assert in_parts(given, AROUND) == (given, list(AROUND))
