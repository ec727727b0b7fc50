"""The ledger: every verdict and every moderation event, append-only, one JSON line each, chained by hashes.

`kernelmark` appends to it after a grading; the ranking and the board read it. Trusted. Writers lock the file. Readers
do not: a line's newline is written last, so everything before the last newline is complete, and anything after it
belongs to a writer that is still at work or was killed, or lost its newline in an editor.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from harness.errors import LedgerError, UsageError
from harness.verdict import Verdict
from leaderboard.record import chain
from leaderboard.record.chain import Head, LinePlace
from leaderboard.record.durable import UNRECORDED, make_directory, sync_directory, unwritable
from leaderboard.record.entry import EXEMPT, KINDS, MODERATION, NO_HASH, SELECTION, VERDICT, Entry, decode, encode
from leaderboard.record.fields import Facts, after
from leaderboard.record.index import Index
from leaderboard.record.lines import Lines
from leaderboard.record.moderation import Exemption, Moderation
from leaderboard.record.selection import Selection

_RUN_PREFIX = re.compile(r"[0-9a-f]{1,16}")


class JsonlLedger:
    """A ledger in one file, `<directory>/<problem slug>.jsonl`, which is created by the first append."""

    def __init__(self, path: Path, index: Index | None = None, until: datetime | None = None) -> None:
        """Lines are found through `index`; without an index, each object reads the whole file once.

        Reading leaves out verdicts made after `until`. Writing, `entries` and `verify` use the whole file.
        """
        self.path, self._index, self.until = path, index or Index(), until
        self.torn_path = path.with_name(path.name + ".torn")

    def append(
        self,
        verdict: Verdict,
        remark: Moderation | None = None,
        *,
        exempt: bool = False,
        unless_run: bool = False,
        head: Head | None = None,
    ) -> Entry:
        """Add a verdict and return once it is durable; the cost does not grow with the file.

        `remark` is an event about the run, such as one that keeps it from ranking. The remark, and the line that makes
        the run `exempt` from the daily limits, are written before the verdict in the same write, so that the ledger
        never has the verdict without them. Anything after the last ledger line, such as a line that a killed writer
        left unfinished, is first moved to `<slug>.jsonl.torn`, unless it is a line that lacks its newline alone, which
        is added; the entry's `warnings` say so.

        With `unless_run`, a run that is already in the ledger is not added again: the recorded verdict is returned,
        which may differ. If `head` is not None, the file must begin with it, and only the lines after it are searched
        for the run. The append's lock is held meanwhile.

        Raises:
            LedgerError: the verdict is of another problem, the last line is broken, the file does not begin with
                `head`, or the line could not be written whole and durably (nothing of it is kept then).
        """
        self._refuse_another_problem(verdict)
        events = [(MODERATION, remark.to_json().encode())] if remark else []
        if exempt:
            events.append((EXEMPT, Exemption.of(verdict).model_dump_json().encode()))
        documents, known = [*events, (VERDICT, verdict.to_json().encode())], list[Entry]()

        def made() -> Sequence[tuple[str, bytes]]:
            known.extend(self._of_run(verdict.run, head) if unless_run else [])
            return [] if known else documents

        appended = self._append(made, head)
        return known[0] if known else appended[-1]

    def take_in(self, entries: Iterable[Entry]) -> list[Entry]:
        """Append the entries of another ledger of this problem that are missing here, in order and in one write, and
        return them.

        Raises:
            LedgerError: a verdict is of another problem, both have different verdicts of one run, or as for `append`.
        """

        def missing() -> Sequence[tuple[str, bytes]]:
            with self._index.lines(self.path) as lines:
                events = {(event.kind, event.document) for event in lines.events()}
            return [(entry.kind, entry.document) for entry in entries if self._lacks(entry, events)]

        return self._append(missing)

    def head(self) -> Head | None:
        """The ledger's head now; None if it has no line yet.

        Raises:
            LedgerError: the last line is broken.
        """
        with self._readable(), suppress(FileNotFoundError), chain.opened(self.path) as file:
            return chain.head(self.path, file)
        return None

    def refuse_another(self, head: Head) -> None:
        """Check that the file begins with `head`.

        Raises:
            LedgerError: it does not, or cannot be read.
        """
        with self._readable(), suppress(FileNotFoundError), chain.opened(self.path) as file:
            self._refuse_another(file, head)
            return
        raise self._another(head, "is gone")

    def refuse_if_broken(self) -> None:
        """Check, before a grading, that its verdict can be appended, and a board made of it. Changes nothing.

        Raises:
            LedgerError: the chain is broken.
            UsageError: the file or its folder cannot be written.
        """
        try:
            with chain.opened(self.path) as file, self.path.open("r+b"):
                chain.last(self.path, file)
            with self.lines():  # reads what is new since the index was written
                pass
        except (FileNotFoundError, NotADirectoryError):
            if folder := unwritable(self.path):
                raise UsageError(str(self.path), f"the result cannot be recorded in {folder}", UNRECORDED) from None
        except OSError as error:
            what = f"the result cannot be recorded there ({error.strerror})"
            raise UsageError(str(self.path), what, UNRECORDED) from error

    def moderate(self, event: Moderation) -> Entry:
        """Add a moderation event, durably, to the ledger that holds its run; an event about an author fits any ledger.

        Raises:
            UsageError: the ledger holds no such run.
            LedgerError: as for `append`.
        """
        if event.scope != "author" and self.find(event.run) is None:  # an author may have no run on this problem yet
            raise UsageError("run", f"no run in {self.path} is {event.run}", "the board lists the runs")
        return self._append(lambda: [(MODERATION, event.to_json().encode())])[-1]

    def select(self, selection: Selection, head: Head | None = None) -> Entry:
        """Add a selection durably; the file must begin with `head`.

        Raises:
            LedgerError: as for `append`.
        """
        return self._append(lambda: [(SELECTION, selection.model_dump_json().encode())], head)[-1]

    def read(self) -> Iterator[Entry]:
        """All verdicts and events with whole documents, oldest first; iterating checks the chain and ignores an
        unfinished last line.

        Entries of unknown kinds are part of the chain, but are skipped, as are verdicts made after `until`.

        Raises:
            LedgerError: while iterating: the chain is broken; the message names the line.
        """
        return (entry for entry in self.entries() if entry.kind in KINDS and not after(entry, self.until))

    def runs(self, run_prefix: str = "") -> list[Entry]:
        """The verdicts whose runs begin with these hexadecimal digits, oldest first.

        Raises:
            LedgerError: the chain is broken.
        """
        with self.lines() as lines:
            return [*lines.read(lines.places(run_prefix))]

    def find(self, run: str) -> Verdict | None:
        """The verdict of a run, by its whole id; None if the ledger does not have it.

        Raises:
            LedgerError: the chain is broken.
        """
        verdicts = (entry.verdict for entry in self.runs(run)) if _RUN_PREFIX.fullmatch(run) else iter(())
        return next((verdict for verdict in verdicts if verdict.run == run), None)

    def verify(self) -> int:
        """Check the whole chain and return how many entries it has, of any kind.

        Raises:
            LedgerError: the chain is broken; the message names the line.
        """
        return sum(1 for _ in self.entries())

    def _append(self, made: Callable[[], Sequence[tuple[str, bytes]]], head: Head | None = None) -> list[Entry]:
        """Chain documents, given with their kinds, and write them in one write; returns the entries.

        `made` returns the documents, and is called under the lock. If there are none, nothing is written.
        """
        if head is not None:
            self.refuse_another(head)  # otherwise locking would make a file that is gone
        entries = list[Entry]()
        try:
            with self._locked() as file:
                if head is not None:
                    self._refuse_another(file, head)
                descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size
                (last, whole), warnings = chain.last(self.path, file), tuple[str, ...]()
                if whole < size and (finished := self._finish(descriptor, last, whole, size)):
                    last, whole = finished, size + 1
                    warnings = (f"{self.path}: line {last.seq} lacked its newline, which was added",)
                if not (documents := made()):
                    return entries
                if whole < size:
                    warnings = self._set_aside(descriptor, whole, size)
                lines = b""
                for kind, document in documents:
                    last, line = encode(last, document, warnings, kind)
                    entries.append(last)
                    lines += line
                self._write(descriptor, lines, whole)
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be appended to ({error.strerror})") from error
        return entries

    def _of_run(self, run: str, after: Head | None = None) -> list[Entry]:
        """The verdict of a run in the file, or in the lines after a head, even if it was made after `until`."""
        if after is None:
            with self._index.lines(self.path) as lines:
                return [*lines.read(lines.places(run)[:1])]
        with chain.opened(self.path) as file:
            added = chain.walk(self.path, file, LinePlace(after.seq, 0, after.bytes), after.sha256)
            return [entry for entry, _ in added if entry.kind == VERDICT and entry.verdict.run == run]

    def _lacks(self, entry: Entry, events: Container[tuple[str, bytes]]) -> bool:
        if entry.kind != VERDICT:
            return (entry.kind, entry.document) not in events
        verdict = entry.verdict
        self._refuse_another_problem(verdict)
        known = self._of_run(verdict.run)
        if known and known[0].document != entry.document:
            raise LedgerError(f"run {verdict.run}: {self.path} has another verdict", "one of the two was changed")
        return not known

    def _refuse_another_problem(self, verdict: Verdict) -> None:
        if f"{verdict.problem.slug}.jsonl" != self.path.name:
            raise LedgerError(f"{self.path}: a verdict on {verdict.problem.slug!r} belongs in another ledger")

    def _refuse_another(self, file: BinaryIO, head: Head) -> None:
        if not chain.begins_with(file, head):
            raise self._another(head, "was changed")

    def _another(self, head: Head, what: str) -> LedgerError:
        line = f"line {head.seq} no longer ends at byte {head.bytes} with the hash {head.sha256[:12]}"
        return LedgerError(f"{self.path} {what}: {line}", "`kernelmark repair-ledger` shows what is missing")

    def entries(self) -> Iterator[Entry]:
        """Entries of every kind, in order, with whole documents.

        Raises:
            LedgerError: the chain is broken; the message names the line.
        """
        with self._readable(), suppress(FileNotFoundError), chain.opened(self.path) as file:
            for entry, _ in chain.walk(self.path, file, None, NO_HASH):
                yield entry

    def facts(self) -> Facts:
        """The facts from which the standings follow, all of one moment.

        Raises:
            LedgerError: the chain is broken, or a verdict is of a version that this one cannot read.
        """
        with self.lines() as lines:
            return lines.facts()

    def at(self, numbers: Collection[int]) -> Iterator[Entry]:
        """The entries on some lines, counted from 1, in order.

        Raises:
            LedgerError: the file cannot be read, or one of these lines was changed after it was written.
        """
        with self.lines() as lines:
            yield from lines.read(lines.at(numbers))

    @contextmanager
    def lines(self) -> Iterator[Lines]:
        """The indexed lines, to be read within the block. Other processes that update the index wait until it ends.

        Raises:
            LedgerError: the chain is broken.
        """
        with self._readable(), self._index.lines(self.path, self.until) as lines:
            yield lines

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be read ({error.strerror})") from error

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Open the file for appending, creating it if necessary, and hold its lock."""
        import fcntl  # not on Windows, where clients show results

        make_directory(self.path.parent)
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise LedgerError(f"{self.path} is not a regular file", chain.RESTORE)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._is_current(descriptor):
                    with open(descriptor, "rb", closefd=False) as file:
                        yield file
                    return
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that was forked meanwhile holds it, too
                os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        """Whether the path still names the locked file: a checkout or a copy may have replaced it while we waited."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def _finish(self, descriptor: int, last: Entry | None, whole: int, size: int) -> Entry | None:
        """Add the newline that alone is missing of a line after the last one, as after some editors; returns its entry.
        None if what is there is no whole line, by its hash, or does not follow from the last one.
        """
        line = os.pread(descriptor, min(size - whole, chain.LONGEST_LINE), whole) + b"\n"
        with suppress(ValueError):
            entry = decode(line)
            follows = (entry.seq, entry.prev) == ((last.seq + 1, last.hash) if last else (1, NO_HASH))
            if follows and line.count(b"\n") == 1:
                os.write(descriptor, b"\n")
                os.fsync(descriptor)
                return entry
        return None

    def _set_aside(self, descriptor: int, whole: int, size: int) -> tuple[str]:
        """Move what follows the last complete line out of the ledger; if killed midway, both files may hold it."""
        with self.torn_path.open("ab") as file:
            moved = os.pread(descriptor, size - whole, whole)
            file.write(moved + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.path.parent)
        os.ftruncate(descriptor, whole)
        os.fsync(descriptor)
        what = "of an unfinished last line" if b"\n" not in moved else "that are no ledger line"
        return (f"{self.path}: {len(moved)} bytes {what} were moved to {self.torn_path.name}",)

    def _write(self, descriptor: int, line: bytes, size: int) -> None:
        """Append lines durably, all of them, or leave the file unchanged."""
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
