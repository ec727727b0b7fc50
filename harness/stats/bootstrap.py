"""The block bootstrap of a median, in closed form. `harness.stats.ratio` calls it. Trusted."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist


def lower_end(xs: Sequence[float], confidence: float, length: int) -> float:
    """Where the bootstrap's interval of the median of `xs` begins, for circular blocks of `length` values.

    `xs` is in time order and has at least two values. For −`xs` the result is minus the upper end.

    Blocks of neighbours preserve the autocorrelation of a series: Künsch, "The Jackknife and the Bootstrap for General
    Stationary Observations", The Annals of Statistics 17 (1989). Wrapping around from the last value to the first gives
    each the same weight: Politis and Romano, "A Circular Block-Resampling Procedure for Stationary Data", in LePage and
    Billard, "Exploring the Limits of Bootstrap" (1992).

    Nothing is drawn. A resample's median is at most x when half of its values are; how many are is a sum over
    independent blocks, and its distribution a convolution. This is the limit of infinitely many resamples, as in Efron
    for blocks of one: "Bootstrap Methods: Another Look at the Jackknife", The Annals of Statistics 7 (1979), section 3.

    The end is the quantile at Φ(−√(n/(n−1))·t), with P(|T| ≤ t) = `confidence` for Student's T of n − 1 degrees of
    freedom, because resamples of a small sample vary too little: the expanded percentile interval of Hesterberg, "What
    Teachers Should Know About the Bootstrap", The American Statistician 69 (2015).
    """
    n = len(xs)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student(confidence, n - 1))
    sizes = [length] * (n // length) + [n % length] * (n % length > 0)

    def share(x: float) -> float:
        """The share of resamples whose median (of an even number: the lower of the two) is at most x."""
        ring = [value <= x for value in xs] * 2
        blocks = {size: [0.0] * (size + 1) for size in sizes}
        for size, counts in blocks.items():
            for start in range(n):
                counts[sum(ring[start : start + size])] += 1 / n
        total = [1.0]
        for size in sizes:
            total = _convolved(total, blocks[size])
        return math.fsum(total[(n + 1) // 2 :])

    ordered = sorted(xs)
    return ordered[min(bisect_left(ordered, tail, key=share), n - 1)]


@lru_cache(maxsize=256)
def student(confidence: float, freedom: int) -> float:
    """The t with P(|T| ≤ t) = `confidence`, for Student's T of at least one degree of freedom.

    Bisects the finite series 26.7.3 and 26.7.4 of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964).
    """

    def within(angle: float) -> float:
        odd = freedom % 2
        term, total = math.cos(angle) if odd else 1.0, 0.0
        for k in range(odd + 1, freedom, 2):
            total += term
            term *= k / (k + 1) * math.cos(angle) ** 2
        series = math.sin(angle) * total
        return 2 / math.pi * (angle + series) if odd else series

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _convolved(p: Sequence[float], q: Sequence[float]) -> list[float]:
    """The distribution of the sum of two independent counts."""
    result = [0.0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            result[i + j] += a * b
    return result
