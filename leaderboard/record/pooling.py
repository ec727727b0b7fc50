"""Pools the gradings of one source into one result, and decides whether it may rank.

There is a `PooledSource` for each author's file in each table, and another for its gradings that were not timed as the
table requires. The index keeps them, and the ranking and the site's records follow from them. Trusted; pure. Without
pooling, authors could improve a row by submitting the same file repeatedly.

`pool` combines the accepted gradings that no organizer set aside, whatever their effort; intervals weight them.
After a change of the software (driver, torch, image and the others that `staleness` compares), only gradings with the
same software as the newest one count: `regrade` replaces outdated results instead of averaging them in. Likewise, only
gradings on the newest one's card count, so a source's time is of one card, and sources on one card compare exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Literal, NamedTuple, Self

from harness.stats import UncheckedEstimate, pool
from harness.verdict import Interval
from leaderboard.record.fields import VerdictFields

# The facts that can change while a device keeps its name. The rest of an environment identifies device and sandbox.
SOFTWARE = ("driver", "cuda", "torch", "triton", "python", "image_digest", "power_limit_mw")
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


class FirstGrading(NamedTuple):
    """The first grading of a source in a table, with any software."""

    created_at: datetime
    run: str


class PooledSource(NamedTuple):
    """One author's file in one table."""

    verdict: VerdictFields
    """The newest grading, which represents all of them."""
    first: FirstGrading
    since: int
    """The first line that has a grading of it."""
    gradings: tuple[str, ...]
    """The runs of the gradings that are pooled, oldest first."""
    score: Interval
    """The pooled time."""

    @classmethod
    def of(cls, found: Sequence[VerdictFields]) -> Self:
        """Pool all gradings of a source, each with a score, in any order."""
        oldest_first = sorted(found, key=_age)
        first, newest = oldest_first[0], oldest_first[-1]
        now = _conditions(newest.environment)
        pooled = [v for v in oldest_first if v.setting is newest.setting or _conditions(v.environment) == now]
        # A time below one nanosecond is rounded up to one, for its logarithm.
        times = [
            UncheckedEstimate(v.median_ns or 1, v.low_ns or 1, v.high_ns or 1, v.confidence or 0.95) for v in pooled
        ]
        score = pool(times)
        return cls(
            verdict=newest,
            first=FirstGrading(first.created_at, first.run),
            since=min(v.seq for v in found),
            gradings=tuple(v.run for v in pooled),
            score=Interval(
                median_ns=round(score.median),
                low_ns=math.floor(score.low),
                high_ns=math.ceil(score.high),
                confidence=score.confidence,
            ),
        )

    @property
    def card(self) -> str | None:
        """The device that its gradings ran on, by the hash of its UUID; None if it has none."""
        return self.verdict.environment.device_uuid_sha256

    @property
    def state(self) -> RowState:
        """Whether it may rank, and if not, why; `NO_RANK` says it in words."""
        return self.verdict.no_rank or ("too_wide" if too_wide(self.score) else "ranks")

    @property
    def order(self) -> tuple[int, datetime, str]:
        """Faster first, then earlier; the run breaks ties, so that the order never depends on the ledger's."""
        return self.score.median_ns, *self.first


def pooled(verdicts: Iterable[VerdictFields]) -> list[PooledSource]:
    """The sources that accepted verdicts are gradings of, each in every table that has it."""
    gradings: dict[tuple[object, ...], list[VerdictFields]] = {}
    for verdict in verdicts:
        source = verdict.setting.key, verdict.author, verdict.sha256, verdict.ranks
        gradings.setdefault(source, []).append(verdict)
    return [*map(PooledSource.of, gradings.values())]


_age = attrgetter("created_at", "run")
_conditions = attrgetter("device_uuid_sha256", *SOFTWARE)
