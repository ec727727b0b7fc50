"""`kernelmark check --watch`: repeats a command whenever a file is saved. Trusted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import KernelmarkError
from kernelmark.commands.printing import fail, say
from kernelmark.text.terminal import visible

_EVERY_S = 0.5
_Stamp = tuple[int, int, int]


def repeated(file: Path, once: Callable[[], int]) -> int:
    """Run `once` now, and again whenever the file is saved, until Ctrl-C; returns the last status.

    From the second time on, an error is told, and does not end it: an editor may have written half of the file.
    """
    seen = _stamp(file)
    status = once()
    try:
        while True:
            say(f"waiting until {visible(file.name)} is saved; Ctrl-C ends")
            seen = _changed(file, seen)
            say(f"──── {time.strftime('%H:%M:%S')} " + "─" * 40)
            try:
                status = once()
            except KernelmarkError as error:
                status = fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        say("")  # the terminal has written ^C
        return status


def _changed(file: Path, seen: _Stamp | None) -> _Stamp:
    """Wait until the file is there and differs from what was seen; returns what it is then."""
    while (now := _stamp(file)) is None or now == seen:
        time.sleep(_EVERY_S)
    return now


def _stamp(file: Path) -> _Stamp | None:
    """When it was written, its size, and which file it is, since editors replace files; None if it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
