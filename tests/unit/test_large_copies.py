"""A large copy is split into parts in a row, between what came before the copy and what waited for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.recording.schema import Edge, Empty, GraphNode, Memcpy
from harness.runner.large_copies import PART_BYTES, ROW_BYTES, SMALL_BYTES, in_parts

MIB = 1 << 20
MEMCPY = Memcpy(
    source=1 << 40, target=1 << 41, width=2 * PART_BYTES + 1, height=1, depth=1,
    source_pitch=0, target_pitch=0, source_height=0, target_height=0,
)  # fmt: skip
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
        *(Edge(part, part + 1, "ended") for part in (1, 2, 3)),
    ]


@pytest.mark.parametrize(
    ("target", "width", "widths"),
    [
        (0, 512 * MIB, [PART_BYTES, 128 * MIB]),  # one row too many
        (0, 400_000_000, [399_998_976, 1024]),
        (0, 64 * MIB + 4, [64 * MIB, 4]),
        (4, 64 * MIB, [124, 64 * MIB - ROW_BYTES, ROW_BYTES - 124]),  # until an aligned address
        (4, 64 * MIB + 124, [124, 64 * MIB]),
        (0, 384 * MIB + 4096, [384 * MIB, 4096]),  # too many rows of 4 KiB
    ],
)
def test_a_copy_is_cut_into_rows_of_aligned_memory_and_the_rest(target: int, width: int, widths: list[int]) -> None:
    whole = replace(MEMCPY, target=MEMCPY.target + target, width=width)
    nodes, _ = in_parts([whole], [])
    assert [node.width for node in nodes if isinstance(node, Memcpy)] == widths
    at = 0
    for node in nodes:
        assert node == replace(whole, source=whole.source + at, target=whole.target + at, width=node.width)
        at += node.width
    assert at == width


@pytest.mark.parametrize(
    ("target", "width"),
    [(0, 511 * MIB), (128, PART_BYTES), (0, 64 * MIB + 4096), (4, SMALL_BYTES), (0, SMALL_BYTES - 1)],
)
def test_a_small_or_fast_copy_stays_whole(target: int, width: int) -> None:
    node = replace(MEMCPY, target=MEMCPY.target + target, width=width)
    assert in_parts([node], []) == ([node], [])


def test_other_nodes_stay_as_they_are() -> None:
    rows = replace(MEMCPY, height=2, source_pitch=MEMCPY.width, target_pitch=MEMCPY.width)
    given: list[GraphNode] = [Empty(), replace(MEMCPY, width=PART_BYTES), rows]
    assert in_parts(given, AROUND) == (given, list(AROUND))
