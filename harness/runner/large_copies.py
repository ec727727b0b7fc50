"""Large copies of a recorded call, in parts.

A copy of 512 MiB or more within the device takes longer as the node of a graph than as a call of `cudaMemcpyAsync`,
which the submission made: by 24 % on an H100 and 57 % on an H200. As several smaller nodes, one after the other, it
takes as long as the call (benchmarks/results/conditions_h100.json, conditions_h200.json).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.recording import Edge, Memcpy, Node

PART_BYTES = 384 << 20


def in_parts(nodes: Sequence[Node], edges: Sequence[Edge]) -> tuple[list[Node], list[Edge]]:
    """The nodes and edges of a graph in which each part of a large copy waits for the one before."""
    parts: list[Node] = []
    waits: list[Edge] = []
    first, last = [], []  # part of each node
    for node in nodes:
        first.append(len(parts))
        parts += _parts(node)
        last.append(len(parts) - 1)
        waits += [Edge(place, place + 1, "ended") for place in range(first[-1], last[-1])]
    return parts, [*waits, *(Edge(last[edge.before], first[edge.after], edge.when) for edge in edges)]


def _parts(node: Node) -> Iterator[Node]:
    if not isinstance(node, Memcpy) or node.height > 1 or node.depth > 1:
        yield node
        return
    for start in range(0, node.width, PART_BYTES):
        width = min(PART_BYTES, node.width - start)
        yield replace(node, source=node.source + start, target=node.target + start, width=width)
