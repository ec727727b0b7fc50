"""Reads ledgers into digests, with a cache: what was parsed once is kept in a folder next to the site.

`build` calls it. Trusted. A line's hash covers its bytes and, through the chain, every line before it. So the hash of a
ledger's last line tells whether anything changed, and the hash of a line tells whether it was parsed before. The cache
can be removed at any time; it is rebuilt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness import outside
from harness.verdict import Verdict
from leaderboard.publishing.site import digest as ledger_digest
from leaderboard.publishing.site.digest import LedgerDigest
from leaderboard.publishing.site.processes import share
from leaderboard.publishing.site.summary import VerdictSummary, line
from leaderboard.record.current import Current
from leaderboard.record.durable import write_whole
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings.excerpt import Question
from leaderboard.standings.ranking import rankings

_TAIL_BYTES = 1 << 16
_FRESH_BYTES = 1 << 28  # how much of the new lines is held in memory, so that the ledger is not read twice for them


class Reader:
    """Reads ledgers, and caches what it parsed under `memory`; entries of another code `version` are ignored.

    `current` decides which rows are marked as stale, `teams` which authors share one.
    """

    def __init__(self, memory: Path, version: str, current: Current, teams: Teams = NO_TEAMS) -> None:
        self._memory = memory
        self._version = version
        self._current = current
        self._teams = teams
        self._fresh: dict[str, Entry] = {}

    def read_all(self, paths: Sequence[Path]) -> tuple[LedgerDigest, ...]:
        """The digests of these ledgers; those that changed are read in several processes."""
        changed = [path for path in paths if self._mark_kept(path.stem) != self._mark(path)]
        share(sorted(changed, key=lambda path: path.stat().st_size), self._digest, worth=1)
        return tuple(self.read(path) for path in paths)

    def _digest(self, paths: Sequence[Path]) -> None:
        for path in paths:
            self.read(path)

    def read(self, path: Path) -> LedgerDigest:
        """The digest of one ledger.

        Raises:
            LedgerError: the chain is broken, or a verdict is of a version that cannot be read.
            OSError: the cache cannot be written.
        """
        mark, old = self._mark(path), self._book(path.stem)
        if old is not None and self._mark_kept(path.stem) == mark:
            return old
        lines: list[VerdictSummary] = []
        ranked = rankings(self._noted(JsonlLedger(path), self._lines(path.stem), lines), self._current, self._teams)
        made = ledger_digest.make(
            path.stem, _end(path), lines, ranked, old, lambda wanted: self._verdicts(path, wanted), self._teams
        )
        self._keep(f"{path.stem}.lines.json", json.dumps([self._version, lines], separators=(",", ":")))
        head = json.dumps([self._version, mark])
        self._keep(f"{path.stem}.book.json", f"{head}\n{made.model_dump_json()}")
        return made

    def entries(self, path: Path, wanted: set[str]) -> dict[str, Entry]:
        """The entries with these hashes; the ledger is read again unless all of them were new."""
        if wanted <= self._fresh.keys():
            return {digest: self._fresh[digest] for digest in wanted}
        return {entry.hash: entry for entry in JsonlLedger(path).read() if entry.hash in wanted}

    def _verdicts(self, path: Path, wanted: set[str]) -> dict[str, Verdict]:
        return {digest: entry.verdict for digest, entry in self.entries(path, wanted).items()}

    def _noted(
        self, ledger: JsonlLedger, known: Mapping[str, VerdictSummary], lines: list[VerdictSummary]
    ) -> Iterator[Entry]:
        """Yield the ledger's entries to the ranking, and summarize each verdict in `lines` on the way."""
        self._fresh, held = {}, 0
        for entry in ledger.read():
            if entry.kind == VERDICT:
                if entry.hash not in known and held < _FRESH_BYTES:
                    self._fresh[entry.hash] = entry
                    held += len(entry.document)
                lines.append(known.get(entry.hash) or line(entry))
            yield entry

    def _mark(self, path: Path) -> str:
        """Identifies what a digest is made from: the ledger's content, what makes its rows stale, and the teams."""
        now = self._current.model_copy(update={"problems": {path.stem: self._current.problems.get(path.stem, "")}})
        return f"{_end(path)} {now.model_dump_json()} {self._teams.model_dump_json()}"

    def _book(self, slug: str) -> LedgerDigest | None:
        with suppress(OSError, ValueError, ValidationError):
            head, _, body = (self._memory / f"{slug}.book.json").read_bytes().partition(b"\n")
            if json.loads(head)[0] == self._version:
                return LedgerDigest.model_validate_json(body)
        return None

    def _mark_kept(self, slug: str) -> str:
        """The mark of a ledger's cached digest; empty if there is none of this version."""
        with suppress(OSError, ValueError), (self._memory / f"{slug}.book.json").open("rb") as file:
            version, mark = json.loads(file.readline())
            return str(mark) if version == self._version else ""
        return ""

    def _lines(self, slug: str) -> dict[str, VerdictSummary]:
        with suppress(OSError, ValueError, TypeError):
            version, kept = json.loads((self._memory / f"{slug}.lines.json").read_bytes())
            if version == self._version:
                return {each[0]: VerdictSummary._make((*each[:5], Question(*each[5]), each[6])) for each in kept}
        return {}

    def _keep(self, name: str, text: str) -> None:
        write_whole(self._memory / name, text.encode(), replace=True)


def _end(path: Path) -> str:
    """Identifies a ledger's content by its size and the hash of its last whole line; reads only its end."""
    with outside.opened(path, follow=True) as file:
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
