"""Opens files that others made (submissions, archived sources, problems, settings). Trusted; the files are not.

A name may lead to a pipe, on which opening waits for ever, to a device that never ends, or by a link to another's file.
So what is opened here is a regular file, and nothing waits. Everything that is read from outside is opened here, and
the caller says how much at most. A refusal is an `OSError` whose `strerror` says why, as that of any other file
that cannot be read, since only the caller can say what the file was for.
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
    return getattr(os, name, 0)  # Windows has others, and no terminal or pipe among its files


_FLAGS = os.O_RDONLY | _flag("O_NONBLOCK") | _flag("O_NOCTTY") | _flag("O_CLOEXEC") | _flag("O_BINARY")
_NO_LINK = _flag("O_NOFOLLOW")
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class RefusedFile(OSError):
    """Something that is not opened; `strerror` says what it is."""

    def __init__(self, path: Path, why: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, why, str(path))


class TooLarge(RefusedFile):
    """A file with more bytes, or a folder with more files, than may be read."""


def opened(path: Path, *, follow: bool = False, buffering: int = -1) -> BinaryIO:
    """A regular file, to be read. A link is refused, unless `follow` says that the caller's own user may have made it.

    Raises:
        OSError: it cannot be opened, or is no regular file.
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
            kind = next((kind for is_one, kind in _KINDS if is_one(mode)), "something else")
            raise RefusedFile(path, f"it is {kind}, not a regular file")
        return os.fdopen(descriptor, "rb", buffering)
    except BaseException:
        os.close(descriptor)
        raise


def read(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """The whole content of a regular file of at most `limit` bytes; links as for `opened`.

    Raises:
        TooLarge: it has more.
        OSError: it cannot be read, or is no regular file.
    """
    with opened(path, follow=follow) as file:
        content = file.read(limit + 1) or b""  # None: a file of the kernel's that has nothing now
    if len(content) > limit:
        raise TooLarge(path, f"it is larger than {limit:,} bytes")
    return content


def text(path: Path, *, errors: str = "strict") -> str:
    """What a person wrote: a regular file of at most `TEXT_BYTES` in UTF-8, which a link may lead to.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger.
        UnicodeDecodeError: it is not UTF-8, and `errors` is "strict".
    """
    return read(path, TEXT_BYTES, follow=True).decode("utf-8", errors).replace("\r\n", "\n")


def walked(root: Path, *, most: int, deepest: int) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Every folder from `root` down to `deepest` levels below it, with the names of its folders and of all else in it.

    Links are not followed, and count as all else. What cannot be listed is left out. The caller may remove names of
    folders, into which it does not want to look.

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
    """Name and kind of at most `most` + 1 entries: one more than are allowed shows that there are too many."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(most + 1), entries, strict=False):
                yield entry.name, entry.is_dir(follow_symlinks=False)
    except OSError:
        return


def real(path: Path) -> Path:
    """The absolute path with its links resolved, as far as they do not lead in a circle, which `Path.resolve` raises
    for in some versions of Python.
    """
    return Path(os.path.realpath(path))
