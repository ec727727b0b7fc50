"""Shows on stderr how far a command is that grades several submissions. Trusted; names may be hostile text.

Each finished submission is a line. On a terminal a bar below says how many are done, how many a minute, and how many
are left.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from kernelmark.text.progress import Reporter, describe
from kernelmark.text.terminal import visible

if TYPE_CHECKING:
    from harness.judge import Progress


class BatchReporter(Reporter):
    """A reporter of `total` submissions; the total may grow. Any thread may call it."""

    def __init__(self, total: int = 0, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._total, self._done = total, 0
        self._lock = threading.RLock()

    def expect(self, more: int) -> None:
        """Add submissions to the total."""
        with self._lock:
            self._total += more
            self._count()

    def report(self, step: Progress) -> None:
        """Show a step of the only submission that is being graded."""
        with self._lock:
            if self._bar is None:
                super().report(step)
            else:
                self._count(f": {describe(step)}")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        with self._lock, self.hidden():
            self._print(visible(line))

    def finished(self, name: str, result: str) -> None:
        """Print what became of one submission."""
        with self._lock:
            self._done += 1
            self._last = ""
            self.say(f"{self._done}/{self._total} {name}: {result}")
            self._count()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the bar away, so that something can be printed."""
        if self._bar is not None:
            self._bar.stop()
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.start()

    def _count(self, step: str = "") -> None:
        minutes = (time.monotonic() - self._started) / 60
        left = self._total - self._done
        rate = f"{self._done / minutes if minutes else 0:.1f} a minute"
        self._show(f"{self._done} done, {rate}, {left} left{step}", self._done, self._total)
