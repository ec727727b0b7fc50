"""Reads the lines of a ledger's file, and checks that each line follows from the one before it.

The ledger and its index call it. Trusted code over files that somebody may have changed. A line's newline is written
last, so everything before the last newline is complete.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from harness.errors import LedgerError, said
from harness.files import outside
from leaderboard.record.entry import Entry, decode, resembles

LONGEST_LINE = 64 << 20  # bytes; what is longer is no line of a ledger
RESTORE = "restore the file from a copy, or move it aside to begin a new ledger"
_MERGE = "`kernelmark merge-ledger` makes one ledger of both sides; docs/organizers.md says how"
_CONFLICT = (b"<<<<<<< ", b"||||||| ", b"=======\n", b">>>>>>> ")  # git's conflict markers
_TAIL_BYTES = 1 << 16


class LinePlace(NamedTuple):
    """The place of a line in its ledger's file: its number, counted from 1, its first byte, and its length in bytes."""

    seq: int
    start: int
    length: int


class Head(NamedTuple):
    """The end of a ledger at some moment: its size, and the number and the hash of its last line.

    Lines are chained, so a file that still has that line there begins with the same lines.
    """

    bytes: int
    seq: int
    sha256: str


def opened(path: Path) -> BinaryIO:
    """Open the file for reading. The path may be a symbolic link, but must lead to a regular file.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
    """
    return outside.opened(path, follow=True, buffering=1 << 20)


def walk(path: Path, file: BinaryIO, after: LinePlace | None, prev: str) -> Iterator[tuple[Entry, LinePlace]]:
    """The entries after the line `after`, whose hash is `prev`, with their places; all entries if `after` is None.

    Raises:
        LedgerError: a line does not follow from the one before it; the message names it by its number.
    """
    seq, start = (after.seq, after.start + after.length) if after else (0, 0)
    whole, garbage = end(file), None
    file.seek(start)
    while start < whole:
        line = file.readline(LONGEST_LINE)
        if not _is_meant(line):
            garbage = garbage or (start, line)  # the next line shows whether this one replaced another
            start += len(line)
            continue
        try:
            entry, fault = decode(line), ""
        except ValueError as error:
            entry, fault = None, str(error)
        if entry is not None and (entry.seq != seq + 1 or entry.prev != prev):
            fault = "does not follow from the line before it"
        if entry is None or fault:
            at = garbage or (start, line)
            raise _broken(path, file, *at, "is not a ledger line" if garbage else fault)
        yield entry, LinePlace(entry.seq, start, len(line))
        seq, prev, garbage, start = entry.seq, entry.hash, None, start + len(line)


def at(path: Path, file: BinaryIO, start: int, length: int) -> Entry:
    """The entry at a place.

    Raises:
        LedgerError: it was changed after it was written.
    """
    return _decoded(path, file, start, os.pread(file.fileno(), length, start))


def end(file: BinaryIO) -> int:
    """The offset of the end of the last complete line."""
    return _tail(file.fileno(), os.fstat(file.fileno()).st_size)[1]


def last(path: Path, file: BinaryIO) -> tuple[Entry | None, int]:
    """The last entry, and the offset of its line's end. Anything after that is unfinished, or not a ledger line.

    Raises:
        LedgerError: the last ledger line was changed after it was written, or there are other lines only.
    """
    before, garbage = os.fstat(file.fileno()).st_size, b""
    while True:
        line, whole = _tail(file.fileno(), before)
        if not line:
            if garbage:
                raise _broken(path, file, 0, garbage, "is not a ledger line")
            return None, 0
        before, garbage = whole - len(line), line
        if _is_meant(line):
            return _decoded(path, file, before, line), whole


def head(path: Path, file: BinaryIO) -> Head | None:
    """The head of a file now; None if it has no line. Raises what `last` raises."""
    entry, whole = last(path, file)
    return Head(whole, entry.seq, entry.hash) if entry else None


def begins_with(file: BinaryIO, head: Head) -> bool:
    """Whether a file still has the last line of this head where it was; as the end, it may lack its newline."""
    descriptor = file.fileno()
    size = os.fstat(descriptor).st_size
    line, whole = _tail(descriptor, min(size, head.bytes))
    if size == head.bytes - 1:  # the next append adds it
        line, whole = os.pread(descriptor, size - whole, whole) + b"\n", head.bytes
    try:
        entry = decode(line)
    except ValueError:
        return False
    return (whole, entry.seq, entry.hash) == head


def _is_meant(line: bytes) -> bool:
    """Whether this is a ledger line, even a damaged one, or one of git's conflict markers."""
    return resembles(line) or line.startswith(_CONFLICT)


def _decoded(path: Path, file: BinaryIO, start: int, line: bytes) -> Entry:
    try:
        return decode(line)
    except ValueError as error:
        raise _broken(path, file, start, line, str(error)) from error


def _broken(path: Path, file: BinaryIO, start: int, line: bytes, what: str) -> LedgerError:
    """The error for a line. It names the line's number, for which the lines before it are counted."""
    file.seek(0)
    blocks = (file.read(min(1 << 20, start - at)) for at in range(0, start, 1 << 20))
    number = 1 + sum(block.count(b"\n") for block in blocks)
    return LedgerError(said(f"{path} line {number}", what), _MERGE if line.startswith(_CONFLICT) else RESTORE)


def _tail(descriptor: int, size: int) -> tuple[bytes, int]:
    """The last complete line, with its newline, and the offset of its end; the line is empty if there is none."""
    length = _TAIL_BYTES
    while True:
        start = max(0, size - length)
        data = os.pread(descriptor, size - start, start)
        if start == 0 or data.count(b"\n") >= 2:
            break
        if length > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"its last line is longer than {LONGEST_LINE >> 20} MiB")
        length *= 4
    newline = data.rfind(b"\n") + 1
    return data[data.rfind(b"\n", 0, max(0, newline - 1)) + 1 : newline], start + newline
