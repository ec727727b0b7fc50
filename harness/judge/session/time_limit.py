"""Limits how long the judge waits for a runner, over one or several commands that share a limit of the problem.

`Session` subtracts the time that it waits. The judge's own work between commands does not count. Trusted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class TimeLimit:
    """`seconds` of waiting; `left_s` is what remains, never below zero."""

    def __init__(self, seconds: float, note: str = "") -> None:
        """`note`: text to append to the message when the limit has passed."""
        self.seconds = self.left_s = seconds
        self.note = note

    @property
    def left_ms(self) -> int:
        """What remains in ms, so that a runner can report early that it will not finish in time."""
        return int(self.left_s * 1000)

    @contextlib.contextmanager
    def running(self) -> Iterator[float]:
        """Subtract the time that passes inside from the limit; yields the deadline, by `time.monotonic`."""
        started = time.monotonic()
        try:
            yield started + self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - (time.monotonic() - started))
