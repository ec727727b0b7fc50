"""What Ray has told a process of its GPU, and what it has changed in its environment. ray itself is not imported."""

from __future__ import annotations

import os


def ordinal(gpu: str, visible: str | None) -> int:
    """Which GPU of its machine one is, by Ray's name of it.

    That is its index, or what stands in the machine's `CUDA_VISIBLE_DEVICES`.
    """
    return int(gpu) if not visible else visible.split(",").index(gpu)


def node_environment(initial: bytes) -> dict[str, str]:
    """The machine's environment without Ray's part in it.

    `initial` is this process's environment as it began: what Ray has set since, such as OMP_NUM_THREADS, is not there.
    """
    pairs = (pair.partition("=") for pair in os.fsdecode(initial).split("\0") if "=" in pair)
    return {name: value for name, _, value in pairs if not name.startswith("RAY_") and name != "SPT_NOENV"}
