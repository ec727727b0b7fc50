"""Reads ledgers into digests; the last digest of each ledger is kept in a folder next to the site.

`build` calls it. Trusted. The hash of a ledger's last line stands for all of its lines. So it tells whether anything
changed since a digest was made. The cache can be removed at any time; it is made again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.errors import LedgerError
from harness.verdict import Verdict
from leaderboard.publishing.site import digest
from leaderboard.publishing.site.digest import LedgerDigest
from leaderboard.record.current import Current
from leaderboard.record.durable import write_whole
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings.ranking import rankings


class Reader:
    """Reads ledgers, and caches their digests under `memory`; those of another code `version` are ignored.

    `current` decides which rows are marked as stale, `teams` which authors share one.
    """

    def __init__(
        self, memory: Path, version: str, current: Current, teams: Teams = NO_TEAMS, index: Index | None = None
    ) -> None:
        self._memory, self._version, self._current, self._teams = memory, version, current, teams
        self._index = index or Index()

    def read(self, path: Path) -> LedgerDigest:
        """The digest of one ledger.

        Raises:
            LedgerError: the chain is broken, or a verdict is of a version that cannot be read.
            OSError: the cache cannot be written.
        """
        ledger = self._ledger(path)
        end, old = ledger.end(), self._kept(path.stem)
        mark = self._mark(path.stem, end)
        if old is not None and old[0] == mark:
            return old[1]
        facts = ledger.facts()
        ranked = rankings(facts, self._current, self._teams)

        def fetch(wanted: set[int]) -> dict[str, Verdict]:
            return {entry.hash: entry.verdict for entry in ledger.at(wanted)}

        made = digest.make(path.stem, end, facts.verdicts, ranked, old[1] if old else None, fetch, self._teams)
        head = json.dumps([self._version, mark])
        text = f"{head}\n{made.model_dump_json()}"
        write_whole(self._memory / f"{path.stem}.book.json", text.encode(), replace=True)
        return made

    def verdict(self, path: Path, run: str) -> Verdict:
        """The whole verdict of a run.

        Raises:
            LedgerError: the ledger was replaced meanwhile, or cannot be read.
        """
        if (found := self._ledger(path).find(run)) is None:
            raise LedgerError(f"{path}: was replaced while it was read", "try again")
        return found

    def _ledger(self, path: Path) -> JsonlLedger:
        return JsonlLedger(path, self._index)

    def _mark(self, slug: str, end: str) -> str:
        """Identifies what a digest is made from: the ledger's content, what makes its rows stale, and the teams."""
        now = self._current.model_copy(update={"problems": {slug: self._current.problems.get(slug, "")}})
        return f"{end} {now.model_dump_json()} {self._teams.model_dump_json()}"

    def _kept(self, slug: str) -> tuple[str, LedgerDigest] | None:
        """The cached digest with its mark; None if there is none of this version."""
        with suppress(OSError, ValueError, ValidationError):
            head, _, body = (self._memory / f"{slug}.book.json").read_bytes().partition(b"\n")
            version, mark = json.loads(head)
            if version == self._version:
                return str(mark), LedgerDigest.model_validate_json(body)
        return None
