"""How well a time is known, by the interval of its median. Pure, trusted."""

from __future__ import annotations

from harness import stats
from harness.verdict import Interval

CONFIDENCE = 0.95
UNSTABLE = 0.02  # of the median: half the interval's width beyond which a time is not called known


def half_width(estimate: stats.Estimate) -> float:
    """Half an interval's width as a share of its median."""
    return (estimate.high - estimate.low) / 2 / estimate.median if estimate.median > 0 else 0.0


def interval(estimate: stats.Estimate) -> Interval:
    """An estimate as the verdict stores it."""
    low, middle, high = (round(v) for v in (estimate.low, estimate.median, estimate.high))
    return Interval(median_ns=middle, low_ns=low, high_ns=high, confidence=estimate.confidence)
