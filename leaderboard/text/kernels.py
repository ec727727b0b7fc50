"""Formats the kernels that one call launches as table cells, for the terminal and the site.

Trusted code over untrusted text: authors name their kernels, and compilers make the names long.
"""

from __future__ import annotations

from harness.verdict import LaunchedKernel
from leaderboard.text.units import duration
from leaderboard.text.visible import shortened

HEAD = ("kernel", "grid", "block", "registers", "shared (B)", "local (B)", "launches", "time")
LEFT = 3  # the first columns, which are left-aligned; the others are numbers
_TAIL = 16  # characters kept of a name's end, where instances of one template differ


def cells(kernel: LaunchedKernel, letters: int) -> tuple[str, ...]:
    """A kernel's cells, with its name cut to `letters` characters; the time is empty if it is unknown."""
    cluster = f", clusters of {_extent(kernel.cluster)}" if max(kernel.cluster) > 1 else ""
    return (
        shortened(kernel.name, letters, _TAIL),
        _extent(kernel.grid),
        _extent(kernel.block) + cluster,
        f"{kernel.registers:,}",
        f"{kernel.shared_bytes:,}",
        f"{kernel.local_bytes:,}",
        f"{kernel.launches:,}",
        duration(kernel.time_ns) if kernel.time_ns is not None else "",
    )


def _extent(extent: tuple[int, int, int]) -> str:
    return "×".join(map(str, extent))
