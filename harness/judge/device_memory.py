"""Whose fault it is when GPU memory, which nothing limits, runs out. Called by a grading; trusted.

What is freed when the sandbox is closed was its own, unless others on the device end, or give memory back, at the same
moment. A fleet, which lets several submissions share a device, grades those again that failed so, one at a time.
"""

from __future__ import annotations

import time

from harness.arena import give_back
from harness.device import DEVICES
from harness.judge.session import Session
from harness.verdict import DeviceKind

_SECONDS = 5.0  # a killed process frees its memory within a second
_SHORT_BYTES = 2 << 30


class DeviceMemory:
    """What was free before the submission came. It may take a third; batches and memory kept for them need the rest."""

    def __init__(self, device: DeviceKind) -> None:
        give_back(device)  # what earlier gradings used
        self._device = DEVICES[device]
        self._free_bytes = self._device.free_bytes()

    def is_short(self) -> bool:
        """Whether so little is free now that a submission may fail for want of it, wherever the rest is."""
        return bool(self._free_bytes) and self._device.free_bytes() < _SHORT_BYTES

    def held_too_much(self, session: Session) -> str | None:
        """Close the session; returns the message if it held more than its third."""
        if not self._free_bytes:
            return None
        allowed = self._free_bytes // 3
        before = self._device.free_bytes()
        session.close()
        deadline = time.monotonic() + _SECONDS
        held = 0
        while held <= allowed and time.monotonic() < deadline:
            time.sleep(0.1)
            held = self._device.free_bytes() - before
        if held <= allowed:
            return None
        return f"held {held:,} bytes of the device's memory, more than the {allowed:,} that a submission may hold"
