"""Lists the memory that PyTorch has allocated on the GPU. Runs in the runner's process, untrusted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch


class Blocks:
    """The blocks in use at the time of construction."""

    def __init__(self) -> None:
        segments = torch.cuda.memory_snapshot()
        self._segments = {segment["address"] for segment in segments}
        self._blocks = sorted(_allocated(segments))

    def parts_in_use(self, segments: Mapping[int, int], before: Blocks) -> set[tuple[int, int]]:
        """The addresses and sizes of the memory in these segments that is in use, or was `before`.

        A segment that PyTorch does not know counts as in use.

        Args:
            segments: sizes by address.
        """
        parts = {(start, nbytes) for start, nbytes in segments.items() if start not in self._segments}
        for low, high in (*self._blocks, *before._blocks):
            if any(start <= low and high <= start + nbytes for start, nbytes in segments.items()):
                parts.add((low, high - low))
        return parts

    def contain(self, low: int, high: int) -> bool:
        """Whether the memory between two addresses is within one block."""
        start, end = self._last_before(low + 1)
        return start <= low and high <= end

    def overlap(self, low: int, high: int) -> bool:
        """Whether a block overlaps the memory between two addresses."""
        return self._last_before(high)[1] > low

    def _last_before(self, address: int) -> tuple[int, int]:
        """The last block that begins before an address; an empty block if there is none."""
        place = bisect_right(self._blocks, (address, 0)) - 1
        return self._blocks[place] if place >= 0 else (0, 0)


def _allocated(segments: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """The start and end addresses of every allocated block."""
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                yield block["address"], block["address"] + block["size"]
