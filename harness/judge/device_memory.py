"""Whose fault it is when the judge runs out of GPU memory, which nothing limits. Called by a grading; trusted.

Only what is freed when the sandbox is closed was its own, whatever else runs on the device.
"""

from __future__ import annotations

import time

from harness.device import DEVICES
from harness.judge.session import Session
from harness.verdict import DeviceKind

_SECONDS = 5.0  # a killed process frees its memory within a second


class DeviceMemory:
    """What was free before the submission came. It may take a third; batches and memory kept for them need the rest."""

    def __init__(self, device: DeviceKind) -> None:
        self._device = DEVICES[device]
        self._free_bytes = self._device.free_bytes()

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
