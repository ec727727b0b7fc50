"""Estimates medians and pseudomedians with their confidence intervals, and combines estimates by the geometric mean.

The judge and the board call it. Trusted.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from harness.stats.series import correlation_time, integrated_autocorrelation, median

_MIN_VALUES = 6  # no interval of fewer values covers a pseudomedian with 95 %


@dataclass(frozen=True)
class Estimate:
    """An estimated median, pseudomedian, or geometric mean of these, with its confidence interval."""

    median: float
    low: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.median <= self.high < math.inf:
            raise ValueError(f"not low ≤ median ≤ high, all finite: {self.low}, {self.median}, {self.high}")
        if not 0 <= self.confidence < 1:
            raise ValueError(f"a confidence is at least 0 and below 1, not {self.confidence}")


def estimate_median(xs: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The median, with the narrowest symmetric pair of order statistics that covers it with at least `confidence`.

    The number of independent samples below the median is binomial(n, ½), so that x₍ₖ₎ to x₍ₙ₊₁₋ₖ₎ covers the median
    with 1 − 2·P(B ≤ k − 1), whatever the continuous distribution (for a discrete one, at least that). David and
    Nagaraja, "Order Statistics", 3rd edition (2003), section 7.1; Hahn and Meeker, "Statistical Intervals" (1991),
    section 5.2.

    `xs` is in time order. If its `correlation_time` τ is above 1, the standard deviation of that number is √τ times as
    large (as in a sample of n/τ; Gastwirth and Rubin, "Effect of Dependence on the Level of Some One-Sample Tests",
    Journal of the American Statistical Association 66, 1971), so the ranks are moved away from the middle by that
    factor. The interval is never narrower than for independent samples.

    If n is too small (below 6 for 95 %), the interval is from the minimum to the maximum, and has their actual
    confidence: 1 − 2^(1−n) for independent samples, which is 0 for a single one, and less for correlated samples.

    Raises:
        ValueError: `xs` is empty, or `confidence` is not between 0 and 1.
    """
    if not xs or not 0 < confidence < 1:
        raise ValueError(f"{len(xs)} values have no interval of confidence {confidence}")
    ordered, n, stretch = sorted(xs), len(xs), math.sqrt(correlation_time(xs))
    coverages = _coverages(n)
    depth = max(1, sum(covered >= confidence for covered in coverages))
    centre = (n + 1) / 2
    rank = math.floor(centre - stretch * (centre - depth))
    covered = coverages[depth - 1]
    if rank < 1:
        # The extremes of this series cover as much as less extreme ranks of independent samples. Coverage is concave in
        # the depth, so a chord between two depths is below it.
        rank = 1
        inner, share = divmod(centre - (centre - 1) / stretch, 1)
        covered = coverages[int(inner) - 1] * (1 - share) + coverages[int(inner)] * share
    return Estimate(median(ordered), ordered[rank - 1], ordered[n - rank], covered)


def estimate_pseudomedian(xs: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The pseudomedian with its interval: the median of the means of all pairs of values, including pairs of a value
    with itself.

    The pseudomedian of a symmetric distribution is its median, and is as robust to outliers. But for normal values its
    error is only 2 % larger than that of the mean, whereas the median's is 25 % larger: Hodges and Lehmann, "Estimates
    of Location Based on Rank Tests", The Annals of Mathematical Statistics 34 (1963).

    The ends of the interval are two of those means, of the same rank from either end. The rank follows from Wilcoxon's
    signed-rank test: its statistic has the mean n(n+1)/4 and the variance n(n+1)(2n+1)/24, and is approximated as
    normal. The rank is rounded outwards. Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd edition
    (2014), sections 3.2, 3.3.

    `xs` is in time order. If it is autocorrelated, the standard deviation is multiplied by the root of the integrated
    autocorrelation time of the values' ranks, since the test's statistic is a sum of ranks. Fewer than ten values
    cannot show autocorrelation. If the rank would be beyond the extremes, the interval ends there, and has a lower
    confidence.

    Raises:
        ValueError: there are fewer than six values, or `confidence` is not between 0 and 1.
    """
    n = len(xs)
    if n < _MIN_VALUES or not 0 < confidence < 1:
        raise ValueError(f"{n} values have no interval of confidence {confidence}")
    means = sorted((a + b) / 2 for i, a in enumerate(xs) for b in xs[i:])
    ordered = sorted(xs)
    ranks = [(bisect_left(ordered, x) + bisect_right(ordered, x)) / 2 for x in xs]
    deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24 * integrated_autocorrelation(ranks))
    middle, normal = n * (n + 1) / 4, NormalDist()
    rank = math.floor(middle - normal.inv_cdf((1 + confidence) / 2) * deviation)
    if rank < 1:
        rank, confidence = 1, min(confidence, 2 * normal.cdf((middle - 1) / deviation) - 1)
    return Estimate(median(means), means[rank - 1], means[-rank], confidence)


def geometric_mean(xs: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """The n-th root of the product. A number of weight 2 counts like two of weight 1.

    Which of two geometric means is larger does not depend on what their numbers are normalized to: Fleming and Wallace,
    "How not to lie with statistics", Communications of the ACM 29 (1986).

    Raises:
        ValueError: `xs` is empty, or a number or a weight is not positive and finite.
    """
    weights = [1.0] * len(xs) if weights is None else weights
    if not xs or not all(0 < x < math.inf for x in (*xs, *weights)):
        raise ValueError("a geometric mean needs positive finite numbers, at least one")
    logs = math.fsum(weight * math.log(x) for x, weight in zip(xs, weights, strict=True))
    return min(max(math.exp(logs / math.fsum(weights)), min(xs)), max(xs))


def combine(estimates: Sequence[Estimate], weights: Sequence[float] | None = None) -> Estimate:
    """The weighted geometric mean of positive estimates, of times or of ratios, with its interval.

    On the log scale the geometric mean is a weighted arithmetic mean. So its half-width is the root of the sum of the
    squares of the weighted half-widths, divided by the sum of the weights: the propagation of independent uncertainties
    in JCGM 100:2008 (GUM), 5.1.2. The upper and the lower half-widths are added separately, which is a good
    approximation if they differ little (Barlow, "Asymmetric Errors", PHYSTAT2003). The estimates are assumed to be
    independent, and their errors to be roughly normal on the log scale. The confidence is the lowest of theirs.

    Raises:
        ValueError: `estimates` is empty or contains a bound that is not positive.
    """
    weights = [1.0] * len(estimates) if weights is None else weights
    middle = geometric_mean([estimate.median for estimate in estimates], weights)
    if not all(estimate.low > 0 for estimate in estimates):
        raise ValueError("a geometric mean needs positive bounds")
    weighted, total = list(zip(estimates, weights, strict=True)), math.fsum(weights)
    down = math.hypot(*(w * (math.log(estimate.median) - math.log(estimate.low)) for estimate, w in weighted)) / total
    up = math.hypot(*(w * (math.log(estimate.high) - math.log(estimate.median)) for estimate, w in weighted)) / total
    low, high = antilog(math.log(middle) - down), antilog(math.log(middle) + up)
    # Rounding must not move a bound past the middle.
    return Estimate(middle, min(low, middle), max(high, middle), min(estimate.confidence for estimate in estimates))


def antilog(log: float) -> float:
    """The exponential function, clamped to positive and finite values."""
    return math.exp(min(max(log, -708.0), 709.0))


@lru_cache(maxsize=256)
def _coverages(n: int) -> tuple[float, ...]:
    """With which probability the order statistics of depth 1, 2, … of n independent samples cover the median."""
    total, coverages = 1 << n, []
    # Exact, since these are integers: `term` is a binomial coefficient, `below` the sum of those so far.
    term = below = 1
    for depth in range(1, (n + 1) // 2 + 1):
        # Python divides integers of any size with correct rounding. A tail below 2^-53 must not round up to certainty.
        coverages.append(min((total - 2 * below) / total, math.nextafter(1.0, 0.0)))
        term = term * (n - depth + 1) // depth
        below += term
    return tuple(coverages)
