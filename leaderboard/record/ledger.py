"""The ledger: every verdict and every moderation event, append-only, one JSON line each, chained by hashes.

`kernelmark` appends after a grading; the ranking and the board read. Trusted. Writers lock the file. Readers do not:
a line's newline is written last, so everything before the last newline is whole, and anything after it belongs to a
writer that is still at work or was killed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness import outside
from harness.errors import LedgerError, UsageError
from harness.verdict import Verdict
from leaderboard.record.durable import UNRECORDED, make_directory, sync_directory, unwritable
from leaderboard.record.entry import EXEMPT, KINDS, MODERATION, NO_HASH, VERDICT, Entry, decode, encode
from leaderboard.record.exemption import Exemption
from leaderboard.record.moderation import Moderation

LONGEST_LINE = 64 << 20  # bytes; what is longer is no line of a ledger
_TAIL_BYTES = 1 << 16
_EVENT = b'"kind":"moderation"'
_HEAD_BYTES = 256
_RUN_PREFIX = re.compile(r"[0-9a-f]{1,16}")
_CONFLICT = (b"<<<<<<< ", b"||||||| ", b"=======\n", b">>>>>>> ")  # git's conflict markers
_MERGE = "`kernelmark merge-ledger` makes one ledger of both sides; docs/organizers.md says how"
_RESTORE = "restore the file from a copy, or move it aside to begin a new ledger"


class JsonlLedger:
    """A ledger in one file, `<directory>/<problem slug>.jsonl`, which is created by the first append."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn_path = path.with_name(path.name + ".torn")

    def append(self, verdict: Verdict, remark: Moderation | None = None, *, exempt: bool = False) -> Entry:
        """Add a verdict and return once it is durable; the cost does not grow with the file.

        `remark`, an event such as one that keeps it from ranking, and the line that makes it `exempt` from the limits a
        day are written before it in the same write, so the verdict is never in the ledger without them. A torn last
        line, left by a writer that was killed, is first moved to `<slug>.jsonl.torn`; the entry's `warnings` say so.

        Raises:
            LedgerError: the verdict is of another problem, the last line is broken, or the line could not be written
                whole and durably (nothing of it is kept then).
        """
        if f"{verdict.problem.slug}.jsonl" != self.path.name:
            raise LedgerError(f"{self.path}: a verdict on {verdict.problem.slug!r} belongs in another ledger")
        events = [(MODERATION, remark.to_json().encode())] if remark else []
        if exempt:
            events.append((EXEMPT, Exemption.of(verdict).model_dump_json().encode()))
        return self._append([*events, (VERDICT, verdict.to_json().encode())])

    def refuse_if_broken(self) -> None:
        """Raise, before a grading spends its time, what `append` would raise after it; changes nothing.

        Raises:
            LedgerError: the last line is broken.
            UsageError: the file or its folder cannot be written.
        """
        try:
            with _opened(self.path) as file, self.path.open("r+b"):
                last_line, _ = _tail(file.fileno(), os.fstat(file.fileno()).st_size)
            if last_line:
                self._decode_last(last_line)
        except (FileNotFoundError, NotADirectoryError):
            if folder := unwritable(self.path):
                raise UsageError(str(self.path), f"the result cannot be recorded in {folder}", UNRECORDED) from None
        except OSError as error:
            what = f"the result cannot be recorded there ({error.strerror})"
            raise UsageError(str(self.path), what, UNRECORDED) from error

    def moderate(self, event: Moderation) -> Entry:
        """Add a moderation event to the ledger that holds its run, or to any ledger if it is about an author; as
        durable as `append`.

        Raises:
            UsageError: the ledger holds no such run.
            LedgerError: as for `append`.
        """
        if event.scope != "author":  # an author may have no run on this problem yet
            self.get(event.run)
        return self._append([(MODERATION, event.to_json().encode())])

    def read(self) -> Iterable[Entry]:
        """All verdicts and events, oldest first; iterating checks the chain and ignores an unfinished last line.

        The result can be iterated several times. Entries of unknown kinds are part of the chain, but are skipped.

        Raises:
            LedgerError: while iterating: the chain is broken; the message names the line.
        """
        return _Reading(self)

    def get(self, run_prefix: str) -> Entry:
        """The one verdict whose run begins with these hexadecimal digits.

        Raises:
            UsageError: no run does, or several do, or these are not such digits.
            LedgerError: the chain is broken.
        """
        if not _RUN_PREFIX.fullmatch(run_prefix):
            raise UsageError("run", f"{run_prefix!r} is not a run id", "give its first hexadecimal digits, up to 16")
        needle = f'"run":"{run_prefix}'.encode()  # a cheap filter, checked again below: a parameter can be named "run"
        verdicts = (entry for entry in self.read() if entry.kind == VERDICT and needle in entry.document)
        matching = [entry for entry in verdicts if entry.verdict.run.startswith(run_prefix)]
        if not matching:
            raise UsageError("run", f"no run in {self.path} begins with {run_prefix!r}", "the board lists the runs")
        if len(matching) > 1:
            runs = ", ".join(e.verdict.run for e in matching[:4]) + (", ..." if len(matching) > 4 else "")
            raise UsageError("run", f"{len(matching)} runs begin with {run_prefix!r} ({runs})", "give more digits")
        return matching[0]

    def find(self, run: str) -> Verdict | None:
        """The verdict of a run, by its whole id; None if the ledger does not have it.

        Raises:
            LedgerError: the chain is broken.
        """
        needle = f'"run":"{run}"'.encode()
        verdicts = (entry.verdict for entry in self.read() if entry.kind == VERDICT and needle in entry.document)
        return next((verdict for verdict in verdicts if verdict.run == run), None)

    def verify(self) -> int:
        """Check the whole chain and return how many entries it has, of any kind.

        Raises:
            LedgerError: the chain is broken; the message names the line.
        """
        return sum(1 for _ in self.walk())

    def _append(self, documents: Sequence[tuple[str, bytes]]) -> Entry:
        """Chain documents, each with its kind, and write them in one write; returns the last entry."""
        try:
            with self._locked() as descriptor:
                size = os.fstat(descriptor).st_size
                last_line, whole = _tail(descriptor, size)
                last = self._decode_last(last_line) if last_line else None
                warnings = self._set_aside(descriptor, whole, size) if whole < size else ()
                lines = b""
                for kind, document in documents:
                    last, line = encode(last, document, warnings, kind)
                    lines += line
                self._write(descriptor, lines, whole)
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be appended to ({error.strerror})") from error
        assert last is not None
        return last

    def walk(self) -> Iterator[Entry]:
        """Entries of every kind, in order.

        Raises:
            LedgerError: the chain is broken; the message names the line.
        """
        try:
            with _opened(self.path) as file:
                _, unread = _tail(file.fileno(), os.fstat(file.fileno()).st_size)
                number, prev = 0, NO_HASH
                while unread > 0:
                    line = file.readline(LONGEST_LINE)
                    number, unread = number + 1, unread - len(line)
                    entry = self._decode(line, number)
                    if entry.seq != number or entry.prev != prev:
                        raise self._broken(number, "does not follow from the line before it")
                    prev = entry.hash
                    yield entry
        except FileNotFoundError:
            return
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be read ({error.strerror})") from error

    def events(self) -> Iterator[Entry]:
        """As `_Reading.events`; a line's kind follows its hashes, within its first 256 bytes."""
        try:
            with _opened(self.path) as file:
                for number, line in enumerate(_lines(file), start=1):
                    if _EVENT in line[:_HEAD_BYTES] and line.endswith(b"\n"):
                        yield self._decode(line, number)
        except FileNotFoundError:
            return
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be read ({error.strerror})") from error

    def at(self, wanted: Collection[int]) -> Iterator[Entry]:
        """As `_Reading.at`."""
        try:
            with _opened(self.path) as file:
                for number, line in enumerate(_lines(file), start=1):
                    if number in wanted:
                        yield self._decode(line, number)
        except FileNotFoundError:
            return
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be read ({error.strerror})") from error

    def _decode(self, line: bytes, number: int) -> Entry:
        try:
            return decode(line)
        except ValueError as error:
            raise self._broken(number, str(error), line) from error

    def _decode_last(self, line: bytes) -> Entry:
        """Decode the last line; the lines before it are counted only if it is broken, for the message."""
        try:
            return decode(line)
        except ValueError as error:
            with _opened(self.path) as file:
                number = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
            raise self._broken(number, str(error), line) from error

    def _broken(self, number: int, what: str, line: bytes = b"") -> LedgerError:
        return LedgerError(f"{self.path} line {number}: {what}", _MERGE if line.startswith(_CONFLICT) else _RESTORE)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file for appending, creating it if necessary, and hold its lock."""
        make_directory(self.path.parent)
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise LedgerError(f"{self.path}: is not a regular file", _RESTORE)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._is_current(descriptor):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        """Whether the path still names the locked file: a checkout or a copy may have replaced it while we waited."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def _set_aside(self, descriptor: int, whole: int, size: int) -> tuple[str]:
        """Move what follows the last whole line out of the ledger; if killed in between, it is kept twice at worst."""
        with self.torn_path.open("ab") as file:
            file.write(os.pread(descriptor, size - whole, whole) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.path.parent)
        os.ftruncate(descriptor, whole)
        os.fsync(descriptor)
        return (f"{self.path}: {size - whole} bytes of an unfinished last line were moved to {self.torn_path.name}",)

    def _write(self, descriptor: int, line: bytes, size: int) -> None:
        """Append a line, whole and durably, or leave the file unchanged."""
        try:
            written = os.write(descriptor, line)
            if written != len(line):
                raise OSError(0, f"only {written:,} of {len(line):,} bytes could be written")
            os.fsync(descriptor)
            if size == 0:
                sync_directory(self.path.parent)
        except OSError as error:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
            what = f"{self.path}: the verdict was not recorded ({error.strerror})"
            raise LedgerError(what, "free some space, then submit again") from error


@dataclass(frozen=True)
class _Reading:
    """The entries of a ledger, read again by every loop: the ranking reads a ledger more than once."""

    ledger: JsonlLedger

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entry in self.ledger.walk() if entry.kind in KINDS)

    def events(self) -> Iterator[Entry]:
        """Only the moderation events, with their own hashes checked but not the chain.

        Raises:
            LedgerError: the file cannot be read, or an event was changed after it was written.
        """
        return self.ledger.events()

    def at(self, wanted: Collection[int]) -> Iterator[Entry]:
        """The entries on some lines, counted from 1, with their own hashes checked but not the chain.

        Raises:
            LedgerError: the file cannot be read, or one of these lines was changed after it was written.
        """
        return self.ledger.at(wanted)


def _opened(path: Path) -> BinaryIO:
    """The file, to be read: a link to it may be an organizer's, but it is a file."""
    return outside.opened(path, follow=True, buffering=1 << 20)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Its lines; what is longer than `LONGEST_LINE` comes in several."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def _tail(descriptor: int, size: int) -> tuple[bytes, int]:
    """The last whole line, newline included (empty if there is none), and the offset of its end."""
    length = _TAIL_BYTES
    while True:
        start = max(0, size - length)
        data = os.pread(descriptor, size - start, start)
        if start == 0 or data.count(b"\n") >= 2:
            break
        if length > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"its last line is longer than {LONGEST_LINE >> 20} MiB")
        length *= 4
    end = data.rfind(b"\n") + 1
    return data[data.rfind(b"\n", 0, max(0, end - 1)) + 1 : end], start + end
