"""Rankings of entries that a test made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from leaderboard.record.current import Current
from leaderboard.record.entry import Entry, encode
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.lines import Lines
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings import ranking
from leaderboard.standings.ranking import Table


def rank(entries: Iterable[Entry], current: Current | None = None, teams: Teams = NO_TEAMS) -> list[Table]:
    """The standings by a ledger of these entries."""
    with held(entries) as lines:
        return ranking.rank(lines, current, teams)


@contextmanager
def held(entries: Iterable[Entry]) -> Iterator[Lines]:
    """The lines of a ledger of these entries."""
    last, content = None, b""
    for entry in sorted(entries, key=attrgetter("seq")):
        last, line = encode(last, entry.document, kind=entry.kind)
        content += line
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger.jsonl")
        path.write_bytes(content)
        with JsonlLedger(path).lines() as lines:
            yield lines
