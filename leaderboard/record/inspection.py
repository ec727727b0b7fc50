"""Finds everything that is wrong with a ledger and its archive, sources and profiles, not only the first fault.

`kernelmark verify` calls it. Trusted, over files that somebody may have changed. Reading a ledger stops at its first
broken line, since nothing after it can be relied on. Inspection continues, and assumes that each line's own hash is
what the next line should follow.

It cannot detect a chain that was rewritten as a whole. The hashes are not signatures; keep a copy of the last one.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.errors import HarnessError, LedgerError, said
from harness.files import outside
from harness.verdict import Verdict
from leaderboard.record.archive import stored
from leaderboard.record.chain import LONGEST_LINE
from leaderboard.record.current import Current
from leaderboard.record.entry import MODERATION, NO_HASH, SELECTION, VERDICT, Entry, decode
from leaderboard.record.profile import SUFFIX, stored_profile


@dataclass(frozen=True)
class Fault:
    """What is wrong, in which file, and on which line."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return said(f"{self.path}:{self.line}", self.what)


@dataclass
class Inspection:
    """The result of inspecting one ledger; `known` and `stale` count verdicts on the current problem and on earlier
    versions of it.

    A verdict on an earlier version is not a fault: such verdicts have their own table. `unknown` counts verdicts on a
    problem that is not here.
    """

    path: Path
    faults: list[Fault] = field(default_factory=list)
    entries: int = 0
    known: int = 0
    stale: int = 0
    unknown: int = 0
    whole: bool = True
    """Whether every line could be read; otherwise a run that seems to be missing may be on an unreadable line."""

    def fault(self, line: int, what: str) -> None:
        """Add what is wrong with a line of the ledger."""
        self.faults.append(Fault(self.path, line, what))


def inspect(path: Path, archive: Path, current: Current) -> Inspection:
    """Inspect a whole ledger and its archive; `current` has the problems of this project."""
    inspection = Inspection(path)
    runs: dict[str, tuple[int, str]] = {}  # the line and the author of each
    named: list[tuple[int, str, str]] = []  # runs that other lines are about: line, verb, run
    try:
        for number, entry in _entries(inspection):
            try:
                if entry.kind == VERDICT:
                    _verdict(inspection, number, entry.verdict, runs, archive, current)
                elif entry.kind == SELECTION:
                    named += [(number, "selects", run) for run in entry.selection.runs]
                elif entry.kind == MODERATION and (event := entry.moderation).scope != "author":
                    # An event about an author is in every ledger, even if the author has no run there.
                    named.append((number, "moderates", event.run))
            except LedgerError as error:
                inspection.fault(number, error.what)
    except OSError as error:
        inspection.fault(1, f"cannot be read ({error.strerror})")
    if inspection.whole:
        for number, verb, run in named:
            if run not in runs:
                inspection.fault(number, f"{verb} run {run}, which is not in this ledger")
        for file in sorted((archive / path.name.removesuffix(".jsonl")).glob(f"*/*{SUFFIX}")):
            if runs.get(file.name.removesuffix(SUFFIX), (0, ""))[1] != file.parent.name:
                inspection.faults.append(Fault(file, 1, "is a profile of no run of this author in the ledger"))
    inspection.faults.sort(key=lambda fault: fault.line)
    return inspection


def _entries(inspection: Inspection) -> Iterator[tuple[int, Entry]]:
    """Yield every intact line with its number, and add a fault for every other line."""
    number, seq, prev, garbage = 0, 0, NO_HASH, False
    with outside.opened(inspection.path, follow=True, buffering=1 << 20) as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # wait for a writer, whose unfinished line is not a fault
        size = file.seek(0, 2)
        fcntl.flock(file, fcntl.LOCK_UN)
        file.seek(0)
        while size > 0:
            line = file.readline(min(size, LONGEST_LINE))
            number, size = number + 1, size - len(line)
            if len(line) == LONGEST_LINE:
                inspection.whole = False
                inspection.fault(number, f"has more than {LONGEST_LINE >> 20} MiB")
                return
            if not line.endswith(b"\n"):
                with suppress(ValueError):
                    decode(line + b"\n")
                    inspection.fault(number, "lacks its newline, which the next recorded result adds")
                    return
                inspection.fault(number, "an unfinished last line; the next recorded result moves it aside")
                return
            try:
                entry = decode(line)
            except ValueError as error:
                inspection.fault(number, str(error))
                inspection.whole, garbage = False, True
                continue
            lost = garbage and entry.prev != prev  # a line was replaced, and what this one should follow is unknown
            if entry.seq != seq + 1 and not lost:
                inspection.fault(number, f"says that it is line {entry.seq}")
            if entry.prev != prev and not lost:
                inspection.fault(number, "does not follow from the line before it")
            seq, prev, garbage = (entry.seq if lost else seq + 1), entry.hash, False
            inspection.entries += 1
            yield number, entry


def _verdict(
    inspection: Inspection,
    number: int,
    verdict: Verdict,
    runs: dict[str, tuple[int, str]],
    archive: Path,
    current: Current,
) -> None:
    first, _ = runs.setdefault(verdict.run, (number, verdict.submission.author))
    if first != number:
        inspection.fault(number, f"has run {verdict.run}, as line {first} has")
    slug = inspection.path.name.removesuffix(".jsonl")
    if verdict.problem.slug != slug:
        inspection.fault(number, f"is on problem {verdict.problem.slug!r}, in the ledger of {slug!r}")
    for read in (stored, partial(stored_profile, run=verdict.run)):
        try:
            read(archive, verdict.problem.slug, verdict.submission)
        except HarnessError as error:
            inspection.fault(number, f"run {verdict.run}: {error.what}")
    now = current.sha256(verdict.problem)
    if now is None:
        inspection.unknown += 1
    elif now == verdict.problem.sha256:
        inspection.known += 1
    else:
        inspection.stale += 1
