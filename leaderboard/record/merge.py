"""Merges two copies of a ledger that were both appended to: `kernelmark merge-ledger`, usable as git's merge driver.

Trusted. Documents are kept byte for byte; only the numbers and hashes that chain them change. The common beginning
stays as it is. After it come the remaining entries of both, by time, keeping each copy's own order: the last moderation
event of a copy wins, so it must stay last. The result does not depend on which copy is called ours.
"""

from __future__ import annotations

import fcntl
import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from harness.errors import LedgerError, said
from harness.files import outside
from harness.verdict import ProblemId
from leaderboard.record.durable import write_whole
from leaderboard.record.entry import KINDS, NO_HASH, VERDICT, Entry, decode, encode, unreadable

_REMEDY = "restore the file from a copy, then merge; `kernelmark verify` says what is wrong with it"


class _Happened(BaseModel):
    run: str = ""
    created_at: AwareDatetime
    problem: ProblemId | None = None


_HAPPENED = TypeAdapter(_Happened)


def merge(ours: bytes, theirs: bytes, base: bytes | None = None) -> bytes:
    """The union of two ledgers, chained again after their common beginning; `base` is their common ancestor, if known.

    An entry that is in both, because they were merged before, is kept once.

    Raises:
        LedgerError: one of them is broken or unfinished, or does not begin with `base`; without `base`, even their
            first lines differ; they have different verdicts for one run; or they are of different problems.
    """
    mine, others = _entries(ours, "ours"), _entries(theirs, "theirs")
    for name, content in (("ours", ours), ("theirs", theirs)):
        if base is not None and not content.startswith(base):
            raise LedgerError(f"{name} does not begin with the base: an old line was changed or removed", _REMEDY)
    common = _common(mine, others)
    if base is None and mine and others and not common:
        what = "ours and theirs do not even have their first line in common"
        raise LedgerError(what, "if both are new ledgers of one problem, give an empty file as --base")
    _refuse_two_stories([*mine, *others])
    tails = sorted((mine[common:], others[common:]), key=lambda tail: [entry.hash for entry in tail[:1]])
    entries = mine[:common]
    seen = {(entry.kind, entry.document) for entry in entries}
    lines = BytesIO(ours).readlines()[:common]
    last = entries[-1] if entries else None
    for _, entry in heapq.merge(*map(_timed, tails), key=lambda timed: timed[0]):
        if (entry.kind, entry.document) not in seen:
            seen.add((entry.kind, entry.document))
            last, line = encode(last, entry.document, kind=entry.kind)
            lines.append(line)
    return b"".join(lines)


def merge_files(ours: Path, theirs: Path, base: Path | None) -> int:
    """Merge two files into the first; returns how many entries it has afterwards.

    Raises:
        LedgerError: as for `merge`, or a file cannot be read or written; the first is unchanged.
    """
    try:
        with outside.opened(ours, follow=True) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a waiting writer sees that the file was replaced, and opens the new one
            merged = merge(file.read(), _whole(theirs), _whole(base) if base else None)
            write_whole(ours, merged, replace=True)
    except OSError as error:
        raise LedgerError(f"{error.filename or ours} cannot be merged ({error.strerror})") from error
    return merged.count(b"\n")


def _whole(path: Path) -> bytes:
    with outside.opened(path, follow=True) as file:
        return file.read()


def _common(mine: Sequence[Entry], others: Sequence[Entry]) -> int:
    """The number of entries that both begin with; a hash covers all entries before it."""
    pairs = enumerate(zip(mine, others, strict=False))
    return next((number for number, (one, other) in pairs if one.hash != other.hash), min(len(mine), len(others)))


def _timed(tail: Iterable[Entry]) -> Iterator[tuple[datetime, Entry]]:
    """Entries with times that never decrease: an entry appended later counts as later, whatever its clock said.

    An entry of an unknown kind gets the time of the one before it.
    """
    now = datetime.min.replace(tzinfo=UTC)
    for entry in tail:
        if entry.kind in KINDS:
            now = max(now, _happened(entry).created_at)
        yield now, entry


def _refuse_two_stories(entries: Iterable[Entry]) -> None:
    """Refuse two different verdicts for one run: somebody changed one of them, and merging could rank either."""
    stories: dict[str, bytes] = {}
    slugs = set()
    for entry in entries:
        if entry.kind != VERDICT:
            continue
        happened = _happened(entry)
        if stories.setdefault(happened.run, entry.document) != entry.document:
            raise LedgerError(f"run {happened.run}: ours and theirs have different verdicts", _REMEDY)
        slugs.add(happened.problem.slug if happened.problem else "")
    if len(slugs) > 1:
        raise LedgerError(f"these are ledgers of different problems: {', '.join(sorted(slugs))}")


def _happened(entry: Entry) -> _Happened:
    try:
        return _HAPPENED.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error


def _entries(content: bytes, name: str) -> list[Entry]:
    entries, prev = list[Entry](), NO_HASH
    for number, line in enumerate(BytesIO(content), start=1):  # lines end at line feeds only
        try:
            entry = decode(line)
        except ValueError as error:
            raise LedgerError(said(f"{name} line {number}", str(error)), _REMEDY) from error
        if entry.seq != number or entry.prev != prev:
            raise LedgerError(f"{name} line {number} does not follow from the line before it", _REMEDY)
        prev = entry.hash
        entries.append(entry)
    return entries
