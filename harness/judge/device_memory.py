"""Decides whose fault it is when GPU memory, which nothing limits, runs out. Called by a grading; trusted.

The memory that is freed when the sandbox closes is counted as the submission's. That is wrong only if another process
on the device frees memory at the same moment. Several submissions of a fleet share a device, and so do a submission and
its baselines, so submissions that failed in this way are graded again, with nothing beside them.
"""

from __future__ import annotations

import time

from harness.arena import give_back
from harness.device import DEVICES
from harness.judge.session import Session
from harness.verdict import Check, DeviceKind, Outcome

_SECONDS = 5.0  # a killed process frees its memory within a second
_SHORT_BYTES = 2 << 30


def lacked_memory(verdict: Check) -> bool:
    """Whether a submission says that it failed on a GPU for a lack of memory.

    Its own output counts as evidence: by a false message it would gain nothing but another grading.
    """
    if verdict.environment.device_kind != "cuda" or verdict.outcome is Outcome.ACCEPTED:
        return False
    said = f"{verdict.message} {verdict.traceback} {verdict.log}".lower()
    return verdict.outcome is Outcome.MEMORY_LIMIT or "out of memory" in said or "alloc_failed" in said


class DeviceMemory:
    """The memory that was free before the submission ran.

    A submission may take a third of it. The judge's batches need the rest.
    """

    def __init__(self, device: DeviceKind) -> None:
        give_back(device)  # memory that earlier gradings used
        self._device = DEVICES[device]
        self._free_bytes = self._device.free_bytes()

    def is_short(self) -> bool:
        """Whether so little memory is free that a submission may fail for lack of it, whoever holds the rest."""
        return bool(self._free_bytes) and self._device.free_bytes() < _SHORT_BYTES

    def held_too_much(self, session: Session) -> str | None:
        """Close the session; returns a message if it held more than a third of the memory."""
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
