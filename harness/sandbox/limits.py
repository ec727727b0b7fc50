"""Compares what a process tree holds with what it may hold, for the providers that have to look for themselves."""

from __future__ import annotations

from harness.sandbox import Breach, Launch
from harness.sandbox.tree import Usage


def over(usage: Usage, limits: Launch) -> Breach | None:
    """The first limit that the usage exceeds."""
    if usage.private_bytes > limits.memory_bytes:
        return Breach("memory", f"{usage.private_bytes:,} bytes in use, {limits.memory_bytes:,} allowed")
    if usage.tasks > limits.processes:
        return Breach("processes", f"{usage.tasks} processes and threads, {limits.processes} allowed")
    return None
