"""Selections: which of their sources authors want to count at the end. Trusted; pure.

The ledger stores them among the verdicts. The last one of an author, or of any member of a team, that was made before
the problem closed counts. A version from before selections skips them, and ranks the best source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from harness.verdict import RUN_ID, Record, Sha256
from leaderboard.record.teams import Teams


class Selection(Record):
    """One choice of an author: the runs that were named, and the sources that these are of."""

    author: str
    runs: Annotated[tuple[Annotated[str, StringConstraints(pattern=RUN_ID)], ...], Field(min_length=1, max_length=100)]
    sha256s: Annotated[tuple[Sha256, ...], Field(min_length=1, max_length=100)]
    created_at: AwareDatetime


def selected(selections: Iterable[Selection], closed: datetime, teams: Teams) -> Mapping[str, frozenset[str]]:
    """The hashes of the sources that count, by the name of each author or team who selected any until `closed`."""
    in_time = (each for each in selections if each.created_at <= closed)
    return {teams.name_of(each.author): frozenset(each.sha256s) for each in in_time}
