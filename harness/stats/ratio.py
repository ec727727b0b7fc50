"""Estimates how many times faster one kernel is than another, from paired measurements. The judge calls it. Trusted."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

from harness.stats.estimate import Estimate, antilog, estimate_median, estimate_pseudomedian
from harness.stats.series import MIN_FOR_CORRELATION, correlation_time

_MIN_FOR_BOOTSTRAP = 6
# √τ for the median of a Gaussian series with an autocorrelation of ρᵏ, ρ = 0.3: τ = 1 + 2·Σ(2/π)·arcsin(ρᵏ).
_ASSUMED_STRETCH = math.sqrt(1.55)


def paired_ratio(ratios: Sequence[float], confidence: float = 0.95, resolution: float = 0.0) -> Estimate:
    """The median of paired ratios with its interval. There is one ratio for each ABBA block, in time order.

    It is computed on the log scale, so that exchanging the two kernels gives the reciprocals. The interval is the hull
    of two intervals: one of order statistics (`estimate_median`), and one of a block bootstrap (`bootstrap_lower_end`)
    with blocks as long as the ratios' `correlation_time`. Its confidence is that of the first. For independent ratios
    the bootstrap alone would suffice: it excludes 1 in 2 to 4 % of simulated A/A comparisons. But for 12 to 48 ratios
    with an autocorrelation of 0.3 it does so in 6 to 7 % of them, since few blocks vary too little. The hull does so in
    3 %.

    Fewer than ten ratios cannot show autocorrelation. If it is 0.3, the extremes of six ratios exclude 1 in 8 % of A/A
    comparisons. So for six to nine ratios the interval is stretched as if it were 0.3, beyond the extremes if
    necessary. Below six the interval is from the minimum to the maximum, with a confidence of 1 − 2^(1−n), which is too
    low to stop measuring.

    `resolution` is a relative error that all ratios share and that repetition cannot reduce. Each end of the interval
    is moved outwards by the factor 1 + `resolution`.

    Raises:
        ValueError: `ratios` is empty or contains a number that is not positive and finite, `confidence` is not between
            0 and 1, or `resolution` is negative or not finite.
    """
    logs = _logs(ratios, resolution)
    ranked = estimate_median(logs, confidence)
    down, up = ranked.median - ranked.low, ranked.high - ranked.median
    if len(logs) >= _MIN_FOR_BOOTSTRAP:
        length = math.ceil(min(correlation_time(logs), len(logs) / 3))
        down = max(down, ranked.median - bootstrap_lower_end(logs, confidence, length))
        up = max(up, -bootstrap_lower_end([-log for log in logs], confidence, length) - ranked.median)
        if len(logs) < MIN_FOR_CORRELATION:
            down, up = down * _ASSUMED_STRETCH, up * _ASSUMED_STRETCH
    log_ratio = Estimate(ranked.median, ranked.median - down, ranked.median + up, ranked.confidence)
    return _ratio(log_ratio, resolution)


def steady_ratio(ratios: Sequence[float], confidence: float = 0.95, resolution: float = 0.0) -> Estimate:
    """The pseudomedian of paired ratios with its interval, for at least six ratios that are nearly independent.

    It is computed on the log scale. `resolution` is as in `paired_ratio`.

    Raises:
        ValueError: as in `paired_ratio` and `estimate_pseudomedian`.
    """
    return _ratio(estimate_pseudomedian(_logs(ratios, resolution), confidence), resolution)


def bootstrap_lower_end(xs: Sequence[float], confidence: float, length: int) -> float:
    """The lower end of the interval of the median of `xs`, by a bootstrap with circular blocks of `length` values.

    `xs` is in time order and has at least two values. The upper end is minus the lower end for −`xs`.

    Blocks of consecutive values preserve the autocorrelation of a series: Künsch, "The Jackknife and the Bootstrap for
    General Stationary Observations", The Annals of Statistics 17 (1989). Wrapping around from the last value to the
    first gives each the same weight: Politis and Romano, "A Circular Block-Resampling Procedure for Stationary Data",
    in LePage and Billard, "Exploring the Limits of Bootstrap" (1992).

    No resamples are drawn, since their distribution can be computed. The median of a resample is at most x if at least
    half of its values are. The number of these values is a sum over independent blocks, so its distribution is a
    convolution. The result is the limit for infinitely many resamples, as in Efron for blocks of one value: "Bootstrap
    Methods: Another Look at the Jackknife", The Annals of Statistics 7 (1979), section 3.

    The lower end is the quantile at Φ(−√(n/(n−1))·t), with P(|T| ≤ t) = `confidence` for Student's T with n − 1 degrees
    of freedom, because resamples of a small sample vary too little: the expanded percentile interval of Hesterberg,
    "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015).
    """
    n = len(xs)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student_quantile(confidence, n - 1))
    sizes = [length] * (n // length) + [n % length] * (n % length > 0)

    def cumulative(x: float) -> float:
        """The share of resamples whose median is at most x; for an even n, the lower of the two middle values."""
        ring = [value <= x for value in xs] * 2  # a circular block may extend past the end
        blocks = {size: [0.0] * (size + 1) for size in sizes}
        for size, block in blocks.items():
            for start in range(n):
                block[sum(ring[start : start + size])] += 1 / n
        distribution = [1.0]
        for size in sizes:
            distribution = _convolve(distribution, blocks[size])
        return math.fsum(distribution[(n + 1) // 2 :])

    ordered = sorted(xs)
    return ordered[min(bisect_left(ordered, tail, key=cumulative), n - 1)]


@lru_cache(maxsize=256)
def student_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| ≤ t) = `confidence`, for Student's T with this many degrees of freedom, at least 1.

    This bisects the finite series 26.7.3 and 26.7.4 of Abramowitz and Stegun, "Handbook of Mathematical Functions"
    (1964).
    """

    def within(angle: float) -> float:
        odd = degrees % 2
        term, total = math.cos(angle) if odd else 1.0, 0.0
        for k in range(odd + 1, degrees, 2):
            total += term
            term *= k / (k + 1) * math.cos(angle) ** 2
        series = math.sin(angle) * total
        return 2 / math.pi * (angle + series) if odd else series

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < confidence else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _convolve(p: Sequence[float], q: Sequence[float]) -> list[float]:
    """The distribution of the sum of two independent counts."""
    result = [0.0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            result[i + j] += a * b
    return result


def _logs(ratios: Sequence[float], resolution: float) -> list[float]:
    if not all(0 < ratio < math.inf for ratio in ratios) or not 0 <= resolution < math.inf:
        raise ValueError("paired ratios must be positive and finite, and their resolution at least 0 and finite")
    return [math.log(ratio) for ratio in ratios]


def _ratio(logs: Estimate, resolution: float) -> Estimate:
    """Convert an estimate of logarithms to one of ratios."""
    shared = math.log1p(resolution)
    low, high = antilog(logs.low - shared), antilog(logs.high + shared)
    return Estimate(antilog(logs.median), low, high, logs.confidence)
