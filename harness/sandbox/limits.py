"""Compares a sandbox's usage with the limits that the kernel does not enforce. Called by the providers; trusted."""

from __future__ import annotations

import select
from pathlib import Path

from harness.sandbox.protocol import Breach, Launch
from harness.sandbox.tree import Usage

# Some data that is queued at sockets (netlink's, and part of TCP's) is not counted as memory: 200 KiB per socket.
SOCKETS = 1024


def over(usage: Usage, limits: Launch) -> Breach | None:
    """The first limit that the usage exceeds."""
    if usage.private_bytes > limits.memory_bytes:
        return Breach("memory", f"{usage.private_bytes:,} bytes of memory in use, {limits.memory_bytes:,} allowed")
    if usage.tasks > limits.processes:
        return Breach("processes", f"{usage.tasks} processes and threads, {limits.processes} allowed")
    return None


def too_many_sockets(pid: int, pidfd: int) -> Breach | None:
    """Whether the network namespace of a process has too many sockets; `pidfd` guards against reuse of the id."""
    try:
        used = int(Path(f"/proc/{pid}/net/sockstat").read_text().split(maxsplit=3)[2])  # "sockets: used 3"
    except (OSError, ValueError, IndexError):
        return None  # it has ended
    if used <= SOCKETS or select.select([pidfd], [], [], 0)[0]:
        return None
    return Breach("memory", f"{used:,} sockets open, {SOCKETS:,} allowed")
