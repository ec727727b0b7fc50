"""Pools the gradings of one source into one result, and decides whether it may rank.

The ranking fills a `PooledSource` for each author's file in each table, and another for its gradings that were not
timed as the table requires; the site's records use the same objects. Trusted; pure. Without pooling, authors could
improve a row by submitting the same file again and again.

`stats.pool` combines the accepted gradings that no organizer set aside, whatever their effort; intervals weight them.
After a change of the software (what `staleness` compares: driver, torch, image, ...), only gradings with the same
software as the newest one count: `regrade` replaces outdated results instead of averaging them in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Literal, NamedTuple

from harness import stats
from harness.verdict import Interval
from leaderboard.record.fields import VerdictFields
from leaderboard.standings.staleness import SOFTWARE

WIDEST = 1.5  # maximum ratio of an interval's upper end to its lower end for a result to rank
RowState = Literal["ranks", "too_wide", "not_replayed", "known_inputs", "disqualified", "late"]
COMPARABLE: frozenset[RowState] = frozenset({"ranks", "too_wide"})
"""The states of rows whose times may be compared with each other's."""
NO_RANK: Mapping[RowState, str] = {
    "too_wide": "interval too wide to rank",
    "not_replayed": "not replayed, which a rank requires",
    "known_inputs": "inputs that can be known beforehand",
}
"""Why a row has no rank, by its state."""


def too_wide(score: Interval) -> bool:
    """Whether a time is too imprecise to rank."""
    return score.high_ns > WIDEST * score.low_ns


class _Time(NamedTuple):
    """A score in ns as pooling needs it: a time below one nanosecond is rounded up to one, for its logarithm."""

    median: int
    low: int
    high: int
    confidence: float


class PooledSource:
    """One author's file in one table; `add` all gradings, each with a score, before reading any property."""

    def __init__(self) -> None:
        self._added: list[VerdictFields] = []

    def add(self, verdict: VerdictFields) -> None:
        """Count a grading."""
        self._added.append(verdict)

    @cached_property
    def _all(self) -> list[VerdictFields]:
        """All gradings, oldest first."""
        return sorted(self._added, key=_age)

    @property
    def verdict(self) -> VerdictFields:
        """The newest grading, which represents all of them."""
        return self._all[-1]

    @property
    def first(self) -> VerdictFields:
        """The source's first grading in this table, with any software."""
        return self._all[0]

    @cached_property
    def gradings(self) -> tuple[VerdictFields, ...]:
        """The gradings that are pooled, oldest first."""
        setting, now = self.verdict.setting, _software(self.verdict.environment)
        return tuple(v for v in self._all if v.setting is setting or _software(v.environment) == now)

    @cached_property
    def score(self) -> Interval:
        """The pooled time."""
        pooled = stats.pool([_Time(v.median_ns or 1, v.low_ns or 1, v.high_ns or 1, v.confidence or 0.95)
                             for v in self.gradings])  # fmt: skip
        return Interval(
            median_ns=round(pooled.median),
            low_ns=math.floor(pooled.low),
            high_ns=math.ceil(pooled.high),
            confidence=pooled.confidence,
        )

    @cached_property
    def state(self) -> RowState:
        """Whether it may rank, and if not, why; `NO_RANK` says it in words."""
        return self.verdict.no_rank or ("too_wide" if too_wide(self.score) else "ranks")

    @property
    def order(self) -> tuple[int, datetime, str]:
        """Faster first, then earlier; the run breaks ties, so that the order never depends on the ledger's."""
        return self.score.median_ns, *self.first.age


_age = attrgetter("created_at", "run")
_software = attrgetter(*SOFTWARE)
