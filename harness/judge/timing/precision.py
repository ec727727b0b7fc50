"""How precisely a time is known, by the interval of its median. Pure, trusted."""

from __future__ import annotations

import math

from harness import stats
from harness.verdict import Interval, Ratio

CONFIDENCE = 0.95
# Two sandboxes with one kernel may differ by this much in all of a grading (docs/timing.md, "Intervals and score").
RESOLUTION = 0.002
UNSTABLE = 0.02  # of the median: if half the interval's width exceeds this, the time is not known well


def half_width(estimate: stats.Estimate) -> float:
    """Half an interval's width as a share of its median."""
    return (estimate.high - estimate.low) / 2 / estimate.median if estimate.median > 0 else math.inf


def interval(estimate: stats.Estimate) -> Interval:
    """An estimate as the verdict stores it."""
    low, middle, high = (round(v) for v in (estimate.low, estimate.median, estimate.high))
    return Interval(median_ns=middle, low_ns=low, high_ns=high, confidence=estimate.confidence)


def ratio(estimate: stats.Estimate) -> Ratio:
    """An estimate as the verdict stores it."""
    return Ratio(median=estimate.median, low=estimate.low, high=estimate.high, confidence=estimate.confidence)
