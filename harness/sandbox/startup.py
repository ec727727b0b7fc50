"""Keeps what the runner prints before it connects in a pipe, so that it can fill neither disk nor memory. Trusted.

The pipe is not read while the sandbox runs, so a writer blocks when it is full (64 KiB). The runner gets another
descriptor for its output once it is connected, so only a failing start, or an attack, writes much here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness.sandbox.protocol import STARTUP_LOG_BYTES


class StartupLog:
    """The judge's end of the pipe."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._kept = b""

    @contextmanager
    def writer(self) -> Iterator[int]:
        """Yield the write end, for the sandbox. The judge's copy is closed on exit; after a failure, both ends."""
        try:
            yield self._write
        except BaseException:
            self.close()
            raise
        os.close(self._write)
        self._write = -1

    def text(self) -> str:
        """What was printed so far, at most `STARTUP_LOG_BYTES`; this also works after `close`."""
        while self._read >= 0 and (room := STARTUP_LOG_BYTES - len(self._kept)) > 0:
            try:
                chunk = os.read(self._read, room)
            except BlockingIOError:
                break
            if not chunk:
                break
            self._kept += chunk
        return self._kept.decode("utf-8", "replace")

    def close(self) -> None:
        """Keep what was printed and close the pipe."""
        if self._read >= 0:
            self.text()
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1
