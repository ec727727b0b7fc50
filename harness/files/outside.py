"""Opens files that others made (submissions, archived sources, problems, settings). Trusted; the files are not.

A path may be a pipe, on which opening waits forever, a device that never ends, or a link to another user's file. So
this module opens only regular files, without waiting. All files from outside are opened here, and the caller limits
their size. A refused file raises an `OSError` whose `strerror` says why, like any other unreadable file, since only the
caller knows what the file was for.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

TEXT_BYTES = 4 << 20  # more than people write into one file: settings, a problem, a table


def _flag(name: str) -> int:
    return getattr(os, name, 0)  # Windows lacks some flags, and has no terminals or pipes among its files


_FLAGS = os.O_RDONLY | _flag("O_NONBLOCK") | _flag("O_NOCTTY") | _flag("O_CLOEXEC") | _flag("O_BINARY")
_NO_LINK = _flag("O_NOFOLLOW")
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class RefusedFile(OSError):
    """A file that is not opened; `strerror` says why."""

    def __init__(self, path: Path, why: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, why, str(path))


class TooLarge(RefusedFile):
    """A file with more bytes, or a folder with more files, than may be read."""


def opened(path: Path, *, follow: bool = False, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading.

    `follow`: whether a symbolic link is followed, because the caller's own user may have made it; otherwise it is
    refused.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    try:
        descriptor = os.open(path, _FLAGS if follow else _FLAGS | _NO_LINK)
    except ValueError:
        raise RefusedFile(path, "its name holds a NUL character") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            circle = follow or not path.is_symlink()
            raise RefusedFile(path, "its links lead in a circle" if circle else "it is a symbolic link") from None
        if error.errno == errno.ENXIO:  # of a socket
            raise RefusedFile(path, "it is not a regular file") from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise RefusedFile(path, os.strerror(errno.EISDIR), errno.EISDIR)
        if not stat.S_ISREG(mode):
            kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
            raise RefusedFile(path, f"it is {kind}, not a regular file")
        return os.fdopen(descriptor, "rb", buffering)
    except BaseException:
        os.close(descriptor)
        raise


def read(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """The whole content of a regular file of at most `limit` bytes; `follow` is as for `opened`.

    Raises:
        TooLarge: it is larger.
        OSError: it cannot be read, or is not a regular file.
    """
    with opened(path, follow=follow) as file:
        content = file.read(limit + 1) or b""  # None: a file of the kernel that has no content now
    if len(content) > limit:
        raise TooLarge(path, f"it is larger than {limit:,} bytes")
    return content


def text(path: Path, *, errors: str = "strict") -> str:
    """The text of a regular file of at most `TEXT_BYTES` in UTF-8; symbolic links are followed.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger.
        UnicodeDecodeError: it is not UTF-8, and `errors` is "strict".
    """
    return read(path, TEXT_BYTES, follow=True).decode("utf-8", errors).replace("\r\n", "\n")


def stamp(path: Path) -> tuple[int, int, int] | None:
    """The time, size and inode of a file, as editors may replace it; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def walked(root: Path, *, most: int, deepest: int) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield all folders from `root` to `deepest` levels below it, with the names of their folders and other entries.

    Links are not followed, and count as other entries. Folders that cannot be listed are skipped. The caller may remove
    names from the list of folders, to skip these.

    Raises:
        TooLarge: there are more than `most` files and folders.
    """
    found, waiting = 0, [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        folders, others = list[str](), list[str]()
        for name, is_folder in _listed(folder, most - found):
            found += 1
            if found > most:
                raise TooLarge(root, f"it holds more than {most:,} files")
            (folders if is_folder else others).append(name)
        folders.sort()
        others.sort()
        yield folder, folders, others
        if depth < deepest:
            waiting += [(folder / name, depth + 1) for name in reversed(folders)]


def _listed(folder: Path, most: int) -> Iterator[tuple[str, bool]]:
    """The names of at most `most` + 1 entries (one more, so that the caller sees that they are too many), and whether
    they are folders.
    """
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(most + 1), entries, strict=False):
                yield entry.name, entry.is_dir(follow_symlinks=False)
    except OSError:
        return


def real(path: Path) -> Path:
    """The absolute path with resolved links; unlike `Path.resolve` in some versions of Python, it accepts circles."""
    return Path(os.path.realpath(path))
