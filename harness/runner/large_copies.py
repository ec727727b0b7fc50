"""Divides large copies of a recorded call into parts, because graph nodes copy some sizes slowly. Untrusted.

A graph node that copies within the device is fast only if the copy is a whole number of rows of 4 or 8 KiB, at most
65,535 of them, and the target address is a multiple of 128. Other copies of more than about 20 MB take longer as a node
than as the submission's call of `cudaMemcpyAsync`, by up to 28 % on an H100 and 59 % on an H200. Divided into parts,
one node after the other, they take at most 2 % longer (benchmarks/results/conditions_h100.json, conditions_h200.json).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.recording.schema import Edge, GraphNode, Memcpy

SMALL_BYTES = 16 << 20  # up to this size a node is at most 0.5 µs slower than the call
PART_BYTES = 384 << 20
ROW_BYTES = 8192
_ALIGNMENT = 128
_MAX_ROWS = 65_535


def in_parts(nodes: Sequence[GraphNode], edges: Sequence[Edge]) -> tuple[list[GraphNode], list[Edge]]:
    """The graph with its large copies divided; every part of a copy waits for the part before it."""
    parts: list[GraphNode] = []
    waits: list[Edge] = []
    first, last = [], []  # the first and the last part of every node
    for node in nodes:
        first.append(len(parts))
        parts += _parts(node)
        last.append(len(parts) - 1)
        waits += [Edge(place, place + 1, "ended") for place in range(first[-1], last[-1])]
    return parts, [*waits, *(Edge(last[edge.before], first[edge.after], edge.when) for edge in edges)]


def _parts(node: GraphNode) -> Iterator[GraphNode]:
    if not isinstance(node, Memcpy) or _stays_whole(node):
        yield node
        return
    start = 0
    for width in _widths(node):
        yield replace(node, source=node.source + start, target=node.target + start, width=width)
        start += width


def _stays_whole(copy: Memcpy) -> bool:
    """Whether a copy is not contiguous, is small, or is already fast."""
    in_rows = any(copy.width % row == 0 and copy.width // row <= _MAX_ROWS for row in (ROW_BYTES // 2, ROW_BYTES))
    is_fast = in_rows and copy.target % _ALIGNMENT == 0
    return copy.height > 1 or copy.depth > 1 or copy.width <= SMALL_BYTES or is_fast


def _widths(copy: Memcpy) -> Iterator[int]:
    """The sizes of the parts: up to the first aligned address, whole rows, and the rest."""
    head = -copy.target % _ALIGNMENT
    if head:
        yield head
    rest = copy.width - head
    while rest >= ROW_BYTES:
        rows = min(rest // ROW_BYTES * ROW_BYTES, PART_BYTES)
        yield rows
        rest -= rows
    if rest:
        yield rest
