"""How long a runner may be waited for, over one command or over several that share a limit of the problem.

`Session` takes what it waits off the limit; the judge's own work between two commands is not counted. Trusted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class TimeLimit:
    """`seconds` of waiting; `left_s` is what is left of them, never below zero."""

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left_s = seconds

    @contextlib.contextmanager
    def running(self) -> Iterator[float]:
        """Take the time that passes inside off the limit; yields the deadline, by `time.monotonic`."""
        started = time.monotonic()
        try:
            yield started + self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - (time.monotonic() - started))
