"""Compares a sandbox's usage with its limits, for the providers, where the kernel does not enforce them."""

from __future__ import annotations

import select
from pathlib import Path

from harness.sandbox.protocol import Breach, Launch
from harness.sandbox.tree import Usage

# Data queued at sockets is not counted as the sandbox's memory for netlink, nor for all of TCP: 200 KiB each.
SOCKETS = 1024


def over(usage: Usage, limits: Launch) -> Breach | None:
    """The first limit that the usage exceeds."""
    if usage.private_bytes > limits.memory_bytes:
        return Breach("memory", f"{usage.private_bytes:,} bytes in use, {limits.memory_bytes:,} allowed")
    if usage.tasks > limits.processes:
        return Breach("processes", f"{usage.tasks} processes and threads, {limits.processes} allowed")
    return None


def too_many_sockets(pid: int, pidfd: int) -> Breach | None:
    """Whether the network namespace of a process has too many; the process is held by a pidfd against id reuse."""
    try:
        used = int(Path(f"/proc/{pid}/net/sockstat").read_text().split(maxsplit=3)[2])  # "sockets: used 3"
    except (OSError, ValueError, IndexError):
        return None  # it has ended
    if used <= SOCKETS or select.select([pidfd], [], [], 0)[0]:
        return None
    return Breach("memory", f"{used:,} sockets open, {SOCKETS:,} allowed")
