"""Everything that is wrong with a ledger and its archive, one fault after the other, never only the first.

`kernelmark verify` calls it. Trusted, over files that somebody may have changed. Reading a ledger stops at its first
broken line, since nothing after it can be relied on; looking for faults goes on, and takes each line's own word for
what the next one should follow.

What this cannot find: a chain that was rewritten whole. The hashes are no signatures; keep a copy of the last one.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import HarnessError, LedgerError
from harness.verdict import Verdict
from leaderboard.record.archive import stored
from leaderboard.record.current import Current
from leaderboard.record.entry import MODERATION, NO_HASH, VERDICT, Entry, decode


@dataclass(frozen=True)
class Fault:
    """What is wrong, and where: a file, and a line of it where it has lines."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@dataclass
class Inspection:
    """What was found in one ledger; `known` and `stale` count the verdicts on the problem as it is and as it was.

    A verdict on an earlier version of its problem is no fault: it stands in a table of its own. `unknown` ones are on a
    problem that is not here.
    """

    path: Path
    faults: list[Fault] = field(default_factory=list)
    entries: int = 0
    known: int = 0
    stale: int = 0
    unknown: int = 0
    whole: bool = True
    """Whether every line could be read: else a run that seems to be missing may stand in one that could not."""


def inspect(path: Path, archive: Path, current: Current) -> Inspection:
    """Examine a whole ledger; `current` has the problems that are here."""
    found = Inspection(path)
    runs: dict[str, int] = {}
    events: list[tuple[int, str]] = []
    try:
        for number, entry in _entries(found):
            if entry.kind == VERDICT:
                _verdict(found, number, entry, runs, archive, current)
            elif entry.kind == MODERATION:
                try:
                    event = entry.moderation
                    if event.scope != "author":  # which stands in every ledger, whether or not they have a run there
                        events.append((number, event.run))
                except LedgerError as error:
                    found.faults.append(Fault(path, number, error.what))
    except OSError as error:
        found.faults.append(Fault(path, 1, f"cannot be read ({error.strerror})"))
    found.faults += [
        Fault(path, number, f"moderates run {run}, which is not in this ledger")
        for number, run in events
        if found.whole and run not in runs
    ]
    found.faults.sort(key=lambda fault: fault.line)
    return found


def _entries(found: Inspection) -> Iterator[tuple[int, Entry]]:
    """Every line that is whole and unchanged, with its number; of all others a fault."""
    number, prev = 0, NO_HASH
    with found.path.open("rb", buffering=1 << 20) as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # a writer at work is no torn line
        size = file.seek(0, 2)
        fcntl.flock(file, fcntl.LOCK_UN)
        file.seek(0)
        while size > 0:
            line = file.readline(size)
            number, size = number + 1, size - len(line)
            if not line.endswith(b"\n"):
                what = "an unfinished last line; the next recorded result moves it aside"
                found.faults.append(Fault(found.path, number, what))
                return
            try:
                entry = decode(line)
            except ValueError as error:
                found.faults.append(Fault(found.path, number, str(error)))
                found.whole, prev = False, ""  # what the next line should follow cannot be told any more
                continue
            if entry.seq != number:
                found.faults.append(Fault(found.path, number, f"says that it is line {entry.seq}"))
            if prev and entry.prev != prev:
                found.faults.append(Fault(found.path, number, "does not follow from the line before it"))
            prev = entry.hash
            found.entries += 1
            yield number, entry


def _verdict(
    found: Inspection, number: int, entry: Entry, runs: dict[str, int], archive: Path, current: Current
) -> None:
    def fault(what: str) -> None:
        found.faults.append(Fault(found.path, number, what))

    try:
        verdict: Verdict = entry.verdict
    except LedgerError as error:
        return fault(error.what)
    first = runs.setdefault(verdict.run, number)
    if first != number:
        fault(f"has run {verdict.run}, as line {first} has")
    slug = found.path.name.removesuffix(".jsonl")
    if verdict.problem.slug != slug:
        fault(f"is on problem {verdict.problem.slug!r}, in the ledger of {slug!r}")
    try:
        stored(archive, verdict.problem.slug, verdict.submission)
    except HarnessError as error:
        fault(f"run {verdict.run}: {error.what}")
    now = current.sha256(verdict.problem)
    if now is None:
        found.unknown += 1
    elif now == verdict.problem.sha256:
        found.known += 1
    else:
        found.stale += 1
    return None
