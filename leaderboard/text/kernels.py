"""What one call launches, as the cells of a table that the terminal and the site show.

Trusted code over untrusted text: a kernel has the name that its author gave it, and a compiler makes that a long one.
"""

from __future__ import annotations

from harness.verdict import LaunchedKernel
from leaderboard.text.units import duration
from leaderboard.text.visible import shortened

HEAD = ("kernel", "grid", "block", "registers", "shared (B)", "local (B)", "launches", "time")
LEFT = 3  # of these columns: the others are numbers, flushed right
_TAIL = 16  # letters of a name's end: by those two instances of one template differ


def cells(kernel: LaunchedKernel, letters: int) -> tuple[str, ...]:
    """A kernel's cells, its name cut to so many letters; the time is empty where it is not known."""
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
