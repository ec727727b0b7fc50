"""Reads what a submission prints while it runs, so that it never blocks. Keeps head and tail, and counts the rest.

The runner receives the pipe's write end as a descriptor, so this works the same in every kind of sandbox. Trusted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from harness.wire import checks

_KEPT_BYTES = 8 << 10  # at each end


class PrintedOutput:
    """A non-blocking pipe with a limit. Selectable: `fileno` is the read end."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._write, True)  # the runner's writes block; our reads do not
        self._head, self._tail, self._total = b"", b"", 0
        self._kept = 0
        self._hushed = False
        self._heading = b""
        self.ended = False

    def fileno(self) -> int:
        return self._read

    @contextlib.contextmanager
    def write_end(self) -> Iterator[int]:
        """Yield the write end, for the runner. The judge's copy is closed afterwards."""
        yield self._write
        os.close(self._write)
        self._write = -1

    def drain(self) -> None:
        """Read what is available, up to 1 MiB, so that endless output cannot block the judge."""
        for _ in range(16):
            try:
                chunk = os.read(self._read, 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                self.ended = True  # no process has the write end open any more
                return
            self._total += len(chunk)
            if self._hushed:
                continue
            chunk, self._heading = self._heading + chunk, b""
            self._kept += len(chunk)
            self._head += chunk[: _KEPT_BYTES - len(self._head)]
            self._tail = (self._tail + chunk)[-_KEPT_BYTES:]

    def begin(self, label: str) -> None:
        """Insert a line with this label before the next printed text, if there is any.

        A submission can print such lines, too, so they prove nothing.
        """
        self.drain()
        ended = not self._kept or self._tail.endswith(b"\n")
        self._heading = f"{'' if ended else chr(10)}[{label}]\n".encode()

    def discard(self) -> None:
        """Discard everything printed from now on: a kernel could print the shapes of hidden cases."""
        self.drain()
        self._hushed = True

    @property
    def over_limit(self) -> bool:
        return self._total > self._limit_bytes

    def text(self) -> str:
        """What was printed, made safe to store and show."""
        if self._kept <= _KEPT_BYTES:
            kept = self._head
        elif self._kept <= 2 * _KEPT_BYTES:
            kept = self._head + self._tail[-(self._kept - _KEPT_BYTES) :]
        else:
            dropped = self._kept - 2 * _KEPT_BYTES
            kept = self._head + f"\n[... {dropped:,} bytes ...]\n".encode() + self._tail
        return checks.printable(kept.decode("utf-8", "replace"))

    def close(self) -> None:
        for end in (self._read, self._write):
            if end >= 0:
                os.close(end)
        self._read = self._write = -1
