"""The statistics of times: quantiles, distribution-free intervals of a median, geometric means of several cases.

The judge and the board call it. Trusted, pure Python. Nothing here assumes that times are normally distributed: they
are skewed, and have several modes where a chip changes its clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A median (or a geometric mean of medians) that lies within `low` to `high` with this confidence."""

    median: float
    low: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.median <= self.high < math.inf:
            raise ValueError(f"not low ≤ median ≤ high, all finite: {self.low}, {self.median}, {self.high}")
        if not 0 <= self.confidence < 1:
            raise ValueError(f"a confidence is at least 0 and below 1, not {self.confidence}")


def quantile(xs: Sequence[float], q: float) -> float:
    """The `q`-quantile by linear interpolation between order statistics at (n − 1)·q.

    Definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996).

    Raises:
        ValueError: `xs` is empty, or `q` is not within 0 to 1.
    """
    if not xs or not 0 <= q <= 1:
        raise ValueError(f"no quantile {q} of {len(xs)} values")
    ordered = sorted(xs)
    below = math.floor((len(ordered) - 1) * q)
    share = (len(ordered) - 1) * q - below
    if share == 0:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    # Rounding must not lead out of the two values that the result lies between.
    return min(max(low * (1 - share) + high * share, low), high)


def median(xs: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones.

    Raises:
        ValueError: `xs` is empty.
    """
    return quantile(xs, 0.5)


def spread(xs: Sequence[float]) -> float:
    """The distance from the 10 % to the 90 % quantile: a width that one outlier does not move.

    Raises:
        ValueError: `xs` is empty.
    """
    return quantile(xs, 0.9) - quantile(xs, 0.1)


def estimate_median(xs: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The median within the narrowest symmetric pair of order statistics that covers it with at least `confidence`.

    The number of samples below the median is binomial(n, ½), so that x₍ₖ₎ to x₍ₙ₊₁₋ₖ₎ covers the median with
    1 − 2·P(B ≤ k − 1), whatever the continuous distribution (for a discrete one, at least that). David and Nagaraja,
    "Order Statistics", 3rd edition (2003), section 7.1; Hahn and Meeker, "Statistical Intervals" (1991), section 5.2.
    Assumes independent samples. Where n is too small (below 6 for 95 %), the result spans the minimum and the maximum
    and carries the confidence that they truly have, 1 − 2^(1−n), which is 0 for a single sample.

    Raises:
        ValueError: `xs` is empty, or `confidence` is not between 0 and 1.
    """
    if not xs or not 0 < confidence < 1:
        raise ValueError(f"no interval of confidence {confidence} of {len(xs)} values")
    ordered, n = sorted(xs), len(xs)
    depth, covered = 1, _coverage(1, n)
    # Integers throughout: `term` is the binomial coefficient (n over depth), `below` the sum of those up to it.
    term = below = 1
    while 2 * depth < n:
        term = term * (n - depth + 1) // depth
        below += term
        if _coverage(below, n) < confidence:
            break
        depth, covered = depth + 1, _coverage(below, n)
    return Estimate(median(ordered), ordered[depth - 1], ordered[n - depth], covered)


def median_interval(xs: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The bounds (low, high) of `estimate_median`, which also tells the confidence that they truly have.

    Raises:
        ValueError: as for `estimate_median`.
    """
    estimate = estimate_median(xs, confidence)
    return estimate.low, estimate.high


def geometric_mean(xs: Sequence[float]) -> float:
    """The n-th root of the product: the mean of ratios that does not depend on which case is the unit.

    Fleming and Wallace, "How not to lie with statistics", Communications of the ACM 29 (1986).

    Raises:
        ValueError: `xs` is empty or holds a number that is not positive and finite.
    """
    if not xs or not all(0 < x < math.inf for x in xs):
        raise ValueError("a geometric mean needs positive finite numbers, at least one")
    mean = math.exp(math.fsum(math.log(x) for x in xs) / len(xs))
    return min(max(mean, min(xs)), max(xs))


def combine(estimates: Sequence[Estimate]) -> Estimate:
    """The geometric mean of several positive estimates, with its interval.

    On the log scale the geometric mean is a plain mean, so that its half-widths are the root of the sum of the squared
    half-widths, over n: the propagation of independent uncertainties in JCGM 100:2008 (GUM), 5.1.2. The upper and the
    lower half-widths are added separately, which Barlow ("Asymmetric Errors", PHYSTAT2003) shows to be an
    approximation, good where the sides differ little. Assumes that the estimates are independent and that their
    errors are roughly normal on the log scale. The confidence is the lowest of theirs.

    Raises:
        ValueError: `estimates` is empty or holds a bound that is not positive.
    """
    middle = geometric_mean([estimate.median for estimate in estimates])
    if not all(estimate.low > 0 for estimate in estimates):
        raise ValueError("a geometric mean needs positive bounds")
    n = len(estimates)
    down = math.hypot(*(math.log(estimate.median / estimate.low) for estimate in estimates)) / n
    up = math.hypot(*(math.log(estimate.high / estimate.median) for estimate in estimates)) / n
    confidence = min(estimate.confidence for estimate in estimates)
    return Estimate(middle, middle * math.exp(-down), middle * math.exp(up), confidence)


def _coverage(below: int, n: int) -> float:
    # Division of integers rounds correctly at any size; only a tail below 2^-53 would round to certainty.
    total = 1 << n
    return min((total - 2 * below) / total, math.nextafter(1.0, 0.0))
