"""How long to wait for a runner, over one command or several that share one of the problem's limits.

`Session` subtracts its waiting from the limit; the judge's own work between commands does not count. Trusted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class TimeLimit:
    """`seconds` of waiting; `left_s` is what remains, never below zero."""

    def __init__(self, seconds: float, note: str = "") -> None:
        """`note`: what to tell after the message that it has passed."""
        self.seconds = self.left_s = seconds
        self.note = note

    @property
    def left_ms(self) -> int:
        """What remains, for a runner that may say that it will not be done by then."""
        return int(self.left_s * 1000)

    @contextlib.contextmanager
    def running(self) -> Iterator[float]:
        """Subtract the time that passes inside from the limit; yields the deadline, by `time.monotonic`."""
        started = time.monotonic()
        try:
            yield started + self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - (time.monotonic() - started))
