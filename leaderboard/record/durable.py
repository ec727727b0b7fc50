"""Atomic, durable file writes: a file exists whole or not at all, even after a crash or a power cut.

The ledger, the archive and the board write with these functions. Trusted. An `OSError` is passed on, since only the
caller knows what the file was for.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

UNRECORDED = "make that place writable, or grade without recording (--no-record)"
"""The remedy if a result cannot be recorded."""


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: a file's own fsync does not cover its name."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Make a directory and its parents, and sync each new name to disk."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)


def unwritable(path: Path) -> Path | None:
    """The obstacle that prevents `path` and its folders from being made: the nearest existing parent, if it is not a
    folder or cannot be written. None if nothing does.
    """
    nearest = next(folder for folder in path.parents if os.path.lexists(folder))
    return None if nearest.is_dir() and os.access(nearest, os.W_OK) else nearest


@contextmanager
def writing(path: Path, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name; it is synced and renamed when the block ends without an error.

    Raises:
        FileExistsError: `path` exists and `replace` is false; nothing was changed.
        OSError: it could not be written; `path` is unchanged.
    """
    make_directory(path.parent)
    temporary = path.parent / f".{secrets.token_hex(8)}.partial"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)  # unlike a rename, this fails if the name is taken
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def write_whole(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file's whole content at once. Raises what `writing` raises."""
    with writing(path, replace=replace) as file:
        file.write(content)
