"""`kernelmark check --watch`: repeats a command whenever one of its files is saved. Trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import KernelmarkError
from kernelmark.text.printing import fail, say
from kernelmark.text.terminal import visible

_EVERY_S = 0.5
_Stamp = tuple[int, int, int]


def repeated(files: Sequence[Path], once: Callable[[], int]) -> int:
    """Run `once` now, and again whenever one of the files is saved, until Ctrl-C; returns the last status.

    From the second time on, an error is printed, and does not end it: an editor may have written half of a file.
    """
    names = " or ".join(visible(file.name) for file in files)
    seen = _stamps(files)
    status = once()
    try:
        while True:
            say(f"waiting until {names} is saved; Ctrl-C ends")
            seen = _changed(files, seen)
            say(f"──── {time.strftime('%H:%M:%S')} " + "─" * 40)
            try:
                status = once()
            except KernelmarkError as error:
                status = fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        say("")  # the terminal has written ^C
        return status


def _changed(files: Sequence[Path], seen: list[_Stamp | None]) -> list[_Stamp | None]:
    """Wait until all files are there and differ from what was seen; returns what they are then."""
    while None in (now := _stamps(files)) or now == seen:
        time.sleep(_EVERY_S)
    return now


def _stamps(files: Sequence[Path]) -> list[_Stamp | None]:
    return [_stamp(file) for file in files]


def _stamp(file: Path) -> _Stamp | None:
    """When it was written, its size, and which file it is, since editors replace files; None if it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
