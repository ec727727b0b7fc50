"""The gradings of one source, pooled into one result, and whether that is known well enough to rank.

The ranking fills a `Source` for each author's file in each table; the records of the site are made of the same ones.
Trusted; pure. Without pooling a row would be the best of as many gradings as its author had patience for.

Pooled are the accepted gradings that no organizer set aside (`stats.pool`), whatever their effort: each counts by its
interval. After a change of the software (what `staleness` looks at: driver, torch, image, ...) only those count that
were made with the software of the newest one: `regrade` replaces what is out of date, and does not average it in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from harness import stats
from harness.verdict import Interval
from leaderboard.record.entry import Entry
from leaderboard.standings.excerpt import Ranked
from leaderboard.standings.staleness import SOFTWARE

WIDEST = 1.5  # times the lower end of an interval: with a higher upper end a result does not rank
TOO_WIDE = "interval too wide to rank"

_software = attrgetter(*SOFTWARE)


def too_wide(score: Interval) -> bool:
    """Whether a time is known too badly to rank."""
    return score.high_ns > WIDEST * score.low_ns


class Grading(NamedTuple):
    """What pooling needs of one verdict, in ns, and where it stands in the ledger; flat: there may be a million.

    A time of less than a nanosecond is taken for one, since its logarithm is needed.
    """

    created_at: datetime
    run: str
    seq: int
    median: int
    low: int
    high: int
    confidence: float
    software: tuple[object, ...]


class Source:
    """One author's file in one table; filled once, then asked."""

    def __init__(self, verdict: Ranked) -> None:
        self.verdict = verdict
        """The newest grading's, which stands for all of them."""
        self.hash = ""
        """Of the newest grading's line."""
        self._found: list[Grading] = []
        self._software = _software(verdict.environment)
        self._newest_at = (verdict.created_at, verdict.run)

    def add(self, verdict: Ranked, score: Interval, entry: Entry) -> None:
        """Count a grading."""
        at = (verdict.created_at, verdict.run)
        times = (score.median_ns or 1, score.low_ns or 1, score.high_ns or 1)
        software = _software(verdict.environment)
        if software == self._software:  # one object for all, of a hundred thousand
            software = self._software
        self._found.append(Grading(*at, entry.seq, *times, score.confidence, software))
        if at >= self._newest_at:
            self.verdict, self._newest_at, self.hash = verdict, at, entry.hash

    @cached_property
    def gradings(self) -> tuple[Grading, ...]:
        """Those that are pooled, oldest first."""
        newest = max(self._found)
        return tuple(sorted(each for each in self._found if each.software == newest.software))

    @property
    def newest(self) -> Grading:
        return self.gradings[-1]

    @cached_property
    def first(self) -> Grading:
        """The first grading that it ever had here, with whatever software: when the source was new."""
        return min(self._found)

    @cached_property
    def score(self) -> Interval:
        """The pooled time; a single grading's own."""
        pooled = stats.pool(self.gradings)
        return Interval(
            median_ns=round(pooled.median),
            low_ns=math.floor(pooled.low),
            high_ns=math.ceil(pooled.high),
            confidence=pooled.confidence,
        )

    @property
    def order(self) -> tuple[int, datetime, str]:
        """Faster first, then what was there earlier; the run only so that the order never depends on the ledger's."""
        return self.score.median_ns, self.first.created_at, self.first.run

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a row tells of it."""
        return {**identity(self.verdict), "score": self.score, "seq": self.newest.seq}


def identity(verdict: Ranked) -> Mapping[str, Any]:
    """What rows and runs set aside have in common."""
    submission = verdict.submission
    return {
        "author": submission.author,
        "submission": submission.name,
        "language": submission.language,
        "sha256": submission.sha256,
        "run": verdict.run,
        "sandbox": verdict.environment.sandbox,
        "created_at": verdict.created_at,
    }
