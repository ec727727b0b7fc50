"""Divides a machine's processors: among the workers of its GPUs, and in a worker between the judge and the runners.

A submission that keeps every processor busy must not slow the process that times its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_LEAST = 4  # processors, below which judge and runners share them all


@dataclass(frozen=True)
class Share:
    """A worker's processors."""

    judge: tuple[int, ...]
    """The processors of the judge, and of launchers, which hold no host code of a submission."""
    runners: tuple[int, ...]

    @classmethod
    def of(cls, cpus: Collection[int]) -> Self | None:
        """A quarter for the judge, the rest for runners; None if there are too few to divide."""
        if len(cpus) < _LEAST:
            return None
        ordered = tuple(sorted(cpus))
        judge = max(2, len(ordered) // 4)
        return cls(ordered[:judge], ordered[judge:])


def near(pci_address: str) -> set[int]:
    """The processors that the kernel calls local to a device on the PCI bus, of those that this process may use."""
    every = os.sched_getaffinity(0)
    try:
        listed = Path("/sys/bus/pci/devices", pci_address, "local_cpulist").read_text()
        local = {cpu for part in listed.strip().split(",") for cpu in _range(part)}
    except (OSError, ValueError):
        return every
    return local & every or every


def divided(nearby: Sequence[set[int]]) -> list[tuple[int, ...]]:
    """One part for each worker, of the processors near its GPU: those that several are near to are dealt out."""
    parts: list[list[int]] = [[] for _ in nearby]
    for cpu in sorted(set().union(*nearby)):
        wanting = [part for part, local in zip(parts, nearby, strict=True) if cpu in local]
        min(wanting, key=len).append(cpu)
    return [tuple(part) for part in parts]


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)
