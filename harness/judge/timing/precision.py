"""Says how precisely a time is known, by the confidence interval of its median. Pure, trusted."""

from __future__ import annotations

import math

from harness import stats
from harness.verdict import Interval, Ratio

CONFIDENCE = 0.95
# Two sandboxes with the same kernel may differ by this much throughout a grading (docs/timing.md, "Intervals and
# score").
RESOLUTION = 0.002
UNSTABLE = 0.02  # a share of the median: with a larger half-width the time counts as unstable


def half_width(estimate: stats.Estimate) -> float:
    """Half an interval's width as a share of its median."""
    return (estimate.high - estimate.low) / 2 / estimate.median if estimate.median > 0 else math.inf


def interval(estimate: stats.Estimate) -> Interval:
    """Convert an estimate of a time in ns to the verdict's form."""
    low, middle, high = (round(v) for v in (estimate.low, estimate.median, estimate.high))
    return Interval(median_ns=middle, low_ns=low, high_ns=high, confidence=estimate.confidence)


def ratio(estimate: stats.Estimate) -> Ratio:
    """Convert an estimate of a ratio to the verdict's form."""
    return Ratio(median=estimate.median, low=estimate.low, high=estimate.high, confidence=estimate.confidence)
