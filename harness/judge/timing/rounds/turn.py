"""A grading's turn: when the device is its own, for what it times in rounds. Trusted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from harness.judge.session import Session
from harness.judge.timing.device_lock import lock_alone, lock_at_once
from harness.verdict import DeviceKind


@dataclass(frozen=True)
class Turn:
    """The turn of one grading, whose build and tests wait for nobody unless it is `held`."""

    device: DeviceKind
    waits: Callable[[], None]
    """Called if another grading has the device."""
    fresh: Callable[[], Session]
    """Starts a sandbox that no submission is in."""
    held: bool
    """Whether the grading has the device from its beginning to its end."""

    def alone(self) -> AbstractContextManager[None]:
        """Wait for the device, and have it."""
        return nullcontext() if self.held else lock_alone(self.device, self.waits)

    def at_once(self) -> AbstractContextManager[bool]:
        """Have it if nobody has to be waited for; gives whether."""
        return nullcontext(True) if self.held else lock_at_once(self.device)
