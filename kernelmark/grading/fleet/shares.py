"""Divides processors among workers, and between judge and runners; limits the sandboxes on a GPU. Trusted.

A submission that keeps its processors busy must not slow the process that times others.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_MIN_CPUS = 4  # with fewer processors, judge and runners share all of them
_CONTEXT_BYTES = 850 << 20  # on an H100 672 MiB for a launcher, 844 to 1150 MiB for a runner with torch


@dataclass(frozen=True)
class CpuShare:
    """A worker's processors."""

    judge: tuple[int, ...]
    """The processors of the judge and of launchers, which run no host code of a submission."""
    runners: tuple[int, ...]

    @classmethod
    def of(cls, cpus: Collection[int]) -> Self | None:
        """A quarter of the processors for the judge, the rest for runners; None if there are too few to divide."""
        if len(cpus) < _MIN_CPUS:
            return None
        ordered = tuple(sorted(cpus))
        judge = max(2, len(ordered) // 4)
        return cls(ordered[:judge], ordered[judge:])


def local_cpus(pci_address: str) -> set[int]:
    """The processors that this process may use and that the kernel reports as local to a device on the PCI bus."""
    every = os.sched_getaffinity(0)
    try:
        listed = Path("/sys/bus/pci/devices", pci_address, "local_cpulist").read_text()
        local = {cpu for part in listed.strip().split(",") for cpu in _range(part)}
    except (OSError, ValueError):
        return every
    return local & every or every


def divide(nearby: Sequence[set[int]]) -> list[tuple[int, ...]]:
    """The processors for each worker, out of those near its GPU. Those near several GPUs are divided evenly."""
    parts: list[list[int]] = [[] for _ in nearby]
    for cpu in sorted(set().union(*nearby)):
        wanting = [part for part, local in zip(parts, nearby, strict=True) if cpu in local]
        min(wanting, key=len).append(cpu)
    return [tuple(part) for part in parts]


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def sandboxes_in(free_bytes: int, judges: int = 1) -> float:
    """How many sandboxes each worker of a device may have, so that half of the free memory is left for tensors.

    A device without its own memory has `free_bytes` of 0, and no limit.
    """
    return max(2, free_bytes // 2 // judges // _CONTEXT_BYTES) if free_bytes else math.inf


class WeightedSemaphore:
    """Limits how many sandboxes or compilers exist at a time; first come, first served.

    Each sandbox has a context on the GPU, even while it waits. A job has two, and two more for each baseline: twenty
    jobs with a baseline took all memory of an H100, and failed.
    """

    def __init__(self, units: float) -> None:
        self._all = self._free = units
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, units: int) -> Iterator[None]:
        """Wait for that many units, or for all if there are fewer, and hold them."""
        taken = min(units, self._all)
        with self._changed:
            mine = object()
            self._waiting.append(mine)
            self._changed.wait_for(lambda: self._waiting[0] is mine and self._free >= taken)
            self._waiting.popleft()
            self._free -= taken
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += taken
                self._changed.notify_all()
