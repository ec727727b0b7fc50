"""How much of the CPU others used while something was timed on it: the kernel's count, less what a grading used itself.

The grading reads it before and after each benchmark case; `doubts` draws the conclusion. Trusted: the kernel does the
counting, so a submission cannot influence it. In a container `/proc/stat` covers the whole machine, as it should. The
resolution is 10 ms; work of other threads of the judge's process counts as the judge's.
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
    """CPU time up to one moment: of the machine, on the CPUs that the judge may use, and of the grading itself."""

    wall_ns: int
    busy_ns: int
    own_ns: tuple[int, ...]


class Neighbours:
    """Reads the CPU time of one grading: the judge's, and that of each of its sandboxes (`Sandbox.cpu_ns`)."""

    def __init__(self, device: DeviceKind, sandboxes: Sequence[Callable[[], int | None]]) -> None:
        self._cpus = os.sched_getaffinity(0)
        self._sandboxes = sandboxes if DEVICES[device].on_host else None

    def read(self) -> CpuReading | None:
        """None on a GPU, or if the kernel or a sandbox does not report it."""
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
        """What others have used since then: their share of the available CPU time, and the amount in ns."""
        after = self.read()
        if before is None or after is None or after.wall_ns <= before.wall_ns:
            return None
        # A sandbox that has ended since then counts with its last reading.
        own_ns = sum(max(0, now - then) for now, then in zip(after.own_ns, before.own_ns, strict=True))
        others_ns = max(0, after.busy_ns - before.busy_ns - own_ns)
        return others_ns / ((after.wall_ns - before.wall_ns) * len(self._cpus)), others_ns


def busy(stat: str, cpus: set[int]) -> int:
    """The time in ns that CPUs were not idle, or were taken by the host of a virtual machine, from `/proc/stat`.

    Raises:
        ValueError: it does not list them all.
    """
    ticks, seen = 0, 0
    for line in stat.splitlines():
        name, *fields = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cpus:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])  # guest time is part of user
            ticks += user + nice + system + irq + softirq + steal
            seen += 1
    if seen < len(cpus):
        raise ValueError("/proc/stat does not tell of each CPU")
    return ticks * _TICK_NS
