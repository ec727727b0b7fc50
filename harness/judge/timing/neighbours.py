"""Measures how much CPU time other programs used during a benchmark: the kernel's total minus the grading's own.
Trusted.

The grading reads it before and after each benchmark case, and `doubts` draws the conclusion. The kernel counts, so a
submission cannot influence the result. In a container `/proc/stat` covers the whole machine, as it should. The
resolution is 10 ms. Work of other threads of the judge's process counts as the judge's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.device import DEVICES
from harness.verdict import DeviceKind

_STAT = Path("/proc/stat")
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class CpuReading(NamedTuple):
    """CPU times up to one moment: of all programs on the judge's CPUs, and of the grading's own processes."""

    wall_ns: int
    busy_ns: int
    own_ns: tuple[int, ...]


class Neighbours:
    """Measures the CPU time that programs outside one grading use.

    The grading's own time is the judge's plus that of each of its sandboxes (`Sandbox.cpu_ns`).
    """

    def __init__(self, device: DeviceKind, sandboxes: Sequence[Callable[[], int | None]]) -> None:
        self._cpus = os.sched_getaffinity(0)
        self._sandboxes = sandboxes if DEVICES[device].on_host else None

    def read(self) -> CpuReading | None:
        """Read the CPU times; None on a GPU, or if the kernel or a sandbox does not report them."""
        if self._sandboxes is None:
            return None
        try:
            busy_ns = busy(_STAT.read_text(), self._cpus)
        except (OSError, ValueError):
            return None
        sandboxes = [used() for used in self._sandboxes]
        known = [ns for ns in sandboxes if ns is not None]
        own_ns = (time.process_time_ns(), *known)
        return CpuReading(time.perf_counter_ns(), busy_ns, own_ns) if len(known) == len(sandboxes) else None

    def since(self, before: CpuReading | None) -> tuple[float, int] | None:
        """What other programs used since a reading: their share of the available CPU time, and the amount in ns."""
        after = self.read()
        if before is None or after is None or after.wall_ns <= before.wall_ns:
            return None
        # A sandbox that has ended in between counts with its last reading.
        own_ns = sum(max(0, now - then) for now, then in zip(after.own_ns, before.own_ns, strict=True))
        others_ns = max(0, after.busy_ns - before.busy_ns - own_ns)
        return others_ns / ((after.wall_ns - before.wall_ns) * len(self._cpus)), others_ns


def busy(stat: str, cpus: set[int]) -> int:
    """The time in ns for which these CPUs were busy, or taken by the host of a virtual machine, from `/proc/stat`.

    Raises:
        ValueError: not all of these CPUs are listed.
    """
    ticks, seen = 0, 0
    for line in stat.splitlines():
        name, *fields = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cpus:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])  # guest time is part of user
            ticks += user + nice + system + irq + softirq + steal
            seen += 1
    if seen < len(cpus):
        raise ValueError("/proc/stat does not list every CPU")
    return ticks * _TICK_NS
