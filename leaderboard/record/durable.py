"""Files that are there whole or not at all, also after a crash or a power cut.

The ledger, the archive and the board write through these; trusted. An `OSError` passes through: the caller knows what
the file meant.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: a file's own fsync does not cover its name."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Make a directory and its parents, each durable in the one above it."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)


def unwritable(path: Path) -> Path | None:
    """What stands in the way of making `path` and its folders: the nearest one that is there, if it is no folder or
    cannot be written. None where nothing does.
    """
    nearest = next(folder for folder in path.parents if os.path.lexists(folder))
    return None if nearest.is_dir() and os.access(nearest, os.W_OK) else nearest


@contextmanager
def writing(path: Path, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Write a file piece by piece under a temporary name; it gets its name, durable, when the block ends well.

    Raises:
        FileExistsError: `path` exists and `replace` is false; nothing was changed.
        OSError: it could not be written; `path` is as it was.
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
            path.hardlink_to(temporary)  # unlike a rename, this fails where the name is taken
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def write_whole(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file whose content is at hand; as `writing`."""
    with writing(path, replace=replace) as file:
        file.write(content)
