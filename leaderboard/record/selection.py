"""Selections: the sources that authors want to count at the end. Trusted; pure.

The ledger stores selections among the verdicts. The last selection of an author, or of any member of a team, that was
made before the problem closed counts. Versions of kernelmark without selections skip them, and rank the best source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from harness.verdict import RUN_ID, FrozenModel, Sha256
from leaderboard.record.teams import Teams


class Selection(FrozenModel):
    """One choice of an author: the runs that were named, and the sources that these are of."""

    author: str
    runs: Annotated[tuple[Annotated[str, StringConstraints(pattern=RUN_ID)], ...], Field(min_length=1, max_length=100)]
    sha256s: Annotated[tuple[Sha256, ...], Field(min_length=1, max_length=100)]
    created_at: AwareDatetime


def selected(selections: Iterable[Selection], closed: datetime, teams: Teams) -> Mapping[str, frozenset[str]]:
    """The hashes of the sources that count, by author or team. Selections made after `closed` are ignored."""
    in_time = [selection for selection in selections if selection.created_at <= closed]
    in_time.sort(key=lambda selection: selection.created_at)  # one that was imported comes later in the ledger
    # A later selection replaces an earlier one of the same author or team.
    return {teams.name_of(selection.author): frozenset(selection.sha256s) for selection in in_time}
