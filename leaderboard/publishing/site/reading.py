"""Ledgers read into books, with a memory: what was parsed once is kept in a folder beside the site.

`build` calls it. Trusted. A line's hash covers its bytes and, through the chain, every line before it; so the hash of a
ledger's last line says whether anything changed, and the hash of a line whether it was parsed before. What is kept can
be removed at any time: it is made anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.verdict import Verdict
from leaderboard.publishing.site import digest as ledger_digest
from leaderboard.publishing.site.digest import LedgerDigest
from leaderboard.publishing.site.processes import share
from leaderboard.publishing.site.summary import VerdictSummary, line
from leaderboard.record.current import Current
from leaderboard.record.durable import write_whole
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rankings

_TAIL_BYTES = 1 << 16
_FRESH_BYTES = 1 << 28  # of new lines that are held, so that a ledger is not read twice for them


class Reader:
    """Reads ledgers, and keeps under `memory` what it parsed; `version` is that of the code that parsed it.

    Rows are marked as stale by `current`.
    """

    def __init__(self, memory: Path, version: str, current: Current) -> None:
        self._memory = memory
        self._version = version
        self._current = current
        self._fresh: dict[str, Entry] = {}

    def read_all(self, paths: Sequence[Path]) -> tuple[LedgerDigest, ...]:
        """The books of these ledgers; several that changed are digested in several processes."""
        changed = [path for path in paths if self._mark_kept(path.stem) != self._mark(path)]
        share(sorted(changed, key=lambda path: path.stat().st_size), self._digest, worth=1)
        return tuple(self.read(path) for path in paths)

    def _digest(self, paths: Sequence[Path]) -> None:
        for path in paths:
            self.read(path)

    def read(self, path: Path) -> LedgerDigest:
        """The book of one ledger.

        Raises:
            LedgerError: the chain is broken, or a verdict is of a version that cannot be read.
            OSError: what was parsed cannot be kept.
        """
        mark, old = self._mark(path), self._book(path.stem)
        if old is not None and self._mark_kept(path.stem) == mark:
            return old
        lines: list[VerdictSummary] = []
        found = rankings(self._noted(JsonlLedger(path), self._lines(path.stem), lines), self._current)
        made = ledger_digest.make(path.stem, _end(path), lines, found, old, lambda wanted: self._verdicts(path, wanted))
        self._keep(f"{path.stem}.lines.json", json.dumps([self._version, lines], separators=(",", ":")))
        head = json.dumps([self._version, mark])
        self._keep(f"{path.stem}.book.json", f"{head}\n{made.model_dump_json()}")
        return made

    def entries(self, path: Path, wanted: set[str]) -> dict[str, Entry]:
        """The lines with these hashes; the ledger is read again only for those that were not new."""
        if wanted <= self._fresh.keys():
            return {digest: self._fresh[digest] for digest in wanted}
        return {entry.hash: entry for entry in JsonlLedger(path).read() if entry.hash in wanted}

    def _verdicts(self, path: Path, wanted: set[str]) -> dict[str, Verdict]:
        return {digest: entry.verdict for digest, entry in self.entries(path, wanted).items()}

    def _noted(
        self, ledger: JsonlLedger, known: Mapping[str, VerdictSummary], lines: list[VerdictSummary]
    ) -> Iterator[Entry]:
        """The ledger's entries, each noted on its way to the ranking."""
        self._fresh, held = {}, 0
        for entry in ledger.read():
            if entry.kind == VERDICT:
                if entry.hash not in known and held < _FRESH_BYTES:
                    self._fresh[entry.hash] = entry
                    held += len(entry.document)
                lines.append(known.get(entry.hash) or line(entry))
            yield entry

    def _mark(self, path: Path) -> str:
        """What names all that a book is made of: the ledger's content, and what makes its rows stale."""
        now = self._current.model_copy(update={"problems": {path.stem: self._current.problems.get(path.stem, "")}})
        return f"{_end(path)} {now.model_dump_json()}"

    def _book(self, slug: str) -> LedgerDigest | None:
        with suppress(OSError, ValueError, ValidationError):
            head, _, body = (self._memory / f"{slug}.book.json").read_bytes().partition(b"\n")
            if json.loads(head)[0] == self._version:
                return LedgerDigest.model_validate_json(body)
        return None

    def _mark_kept(self, slug: str) -> str:
        """What the kept book of a ledger was made of; empty where there is none of this version."""
        with suppress(OSError, ValueError), (self._memory / f"{slug}.book.json").open("rb") as file:
            version, mark = json.loads(file.readline())
            return str(mark) if version == self._version else ""
        return ""

    def _lines(self, slug: str) -> dict[str, VerdictSummary]:
        with suppress(OSError, ValueError, TypeError):
            version, kept = json.loads((self._memory / f"{slug}.lines.json").read_bytes())
            if version == self._version:
                return {each[0]: VerdictSummary._make((*each[:5], tuple(each[5]), each[6])) for each in kept}
        return {}

    def _keep(self, name: str, text: str) -> None:
        write_whole(self._memory / name, text.encode(), replace=True)


def _end(path: Path) -> str:
    """What names a ledger's content: its size and its last whole line's hash, read from its end alone."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = _TAIL_BYTES
        while True:
            file.seek(max(0, size - length))
            tail = file.read(size)
            end = tail.rfind(b"\n") + 1
            start = tail.rfind(b"\n", 0, max(0, end - 1)) + 1
            if start or length >= size:
                break
            length *= 4
    last_hash = tail[start : start + 256].decode("ascii", "replace").partition('"hash":"')[2][:64]
    return f"{size - len(tail) + end} {last_hash}"
