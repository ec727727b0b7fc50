"""Statistics of a series of times: quantiles, autocorrelation, drift, modes, and when one may look at it. Trusted.

Used by the intervals of `estimate` and `ratio`, and by callers that measure until an interval is narrow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, combinations
from operator import mul
from statistics import NormalDist

FEWEST_TO_CORRELATE = 10  # fewer values cannot show their correlation
_FEWEST_TO_DRIFT = 8
_LEAST_DRIFT = 0.01
_Z_DRIFT = NormalDist().inv_cdf(1 - 0.01 / 2)
_FEWEST_FOR_MODES = 20
_APART = 0.02  # of the median
_OUTLIERS = 20  # one value in this many may be an outlier
_CLUSTER = 10  # and a cluster has at least one in this many


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
    # Rounding must not leave the interval of the two values around the result.
    return min(max(low * (1 - share) + high * share, low), high)


def median(xs: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones.

    Raises:
        ValueError: `xs` is empty.
    """
    return quantile(xs, 0.5)


def looks(first: int, most: int) -> tuple[int, ...]:
    """The sizes at which a growing sample may be looked at: `first`, twice that, and so on, and finally `most`.

    Stopping as soon as an interval is narrow, or excludes 1, gives chance another try with each look: looked at after
    every value, a 95 % interval eventually excludes the truth with certainty. Armitage, McPherson and Rowe, "Repeated
    Significance Tests on Accumulating Data", Journal of the Royal Statistical Society A 132 (1969). Doubling keeps the
    looks few, and each sees as many new values as old ones; they cost less coverage than the intervals of
    `estimate_median` have beyond 95 %.

    Raises:
        ValueError: `first` or `most` is not positive.
    """
    if first < 1 or most < 1:
        raise ValueError(f"no looks at {first} to {most} values")
    sizes, look = [], first
    while look < most:
        sizes.append(look)
        look *= 2
    return (*sizes, most)


def correlation_time(xs: Sequence[float]) -> float:
    """How many consecutive values count as one independent value for the median: at least 1, at most n.

    The integrated autocorrelation time 1 + 2·Σρₖ of the side of the median that each value is on, which determines the
    error of a median. Estimated by the initial monotone sequence of Geyer, "Practical Markov Chain Monte Carlo",
    Statistical Science 7 (1992): pairs ρ₂ₖ + ρ₂ₖ₊₁ are added while they are positive, none counting more than the one
    before. Since autocovariances about a sample's own mean are too small, the sum over lags up to w is multiplied by 1
    + (2w + 1)/n: Wolff, "Monte Carlo Errors with Less Errors", Computer Physics Communications 156 (2004). 1 for fewer
    than ten values, which cannot show it, and for constant ones. It errs upwards: for two dozen independent values it
    is 1.5 on average. `xs` is in time order.
    """
    middle = median(xs) if xs else 0.0
    return integrated_autocorrelation([(x > middle) - (x < middle) for x in xs])


def integrated_autocorrelation(xs: Sequence[float]) -> float:
    """The time 1 + 2·Σρₖ of the values themselves, estimated and bounded as in `correlation_time`."""
    n = len(xs)
    if n < FEWEST_TO_CORRELATE:
        return 1.0
    mean = math.fsum(xs) / n
    around = [x - mean for x in xs]
    variance = math.fsum(map(mul, around, around))
    if variance == 0:
        return 1.0

    def correlation(lag: int) -> float:
        return math.fsum(map(mul, around, around[lag:])) / variance

    pair, window = 1 + correlation(1), 1
    total = 2 * pair - 1
    while window + 2 < n:
        pair = min(pair, correlation(window + 1) + correlation(window + 2))
        if pair <= 0:
            break
        total, window = total + 2 * pair, window + 2
    return min(max(1.0, total * (1 + (2 * window + 1) / n)), float(n))


def drift(xs: Sequence[float]) -> float | None:
    """The rise of a series from start to end as a share of its median, negative for a fall; None without a trend.

    n times the median of the slopes between all pairs: Sen, "Estimates of the Regression Coefficient Based on Kendall's
    Tau", Journal of the American Statistical Association 63 (1968). It counts if it amounts to 1 %, and the test of
    Mann ("Nonparametric Tests Against Trend", Econometrica 13, 1945) and Kendall (with his correction for ties: "Rank
    Correlation Methods", 4th edition, 1970) finds a trend at 1 %. An autocorrelated series looks like one, so the
    variance of the test is multiplied by the correlation time of the residuals: Yue and Wang, "The Mann-Kendall Test
    Modified by Effective Sample Size", Water Resources Management 18 (2004). None for fewer than eight values, and if
    the median is not positive. `xs` is in time order.
    """
    n, middle = len(xs), median(xs) if xs else 0.0
    if n < _FEWEST_TO_DRIFT or middle <= 0:
        return None
    pairs = list(combinations(enumerate(xs), 2))
    slope = median([(later - earlier) / (j - i) for (i, earlier), (j, later) in pairs])
    change = slope / middle * n
    if abs(change) < _LEAST_DRIFT:
        return None
    score = abs(sum((later > earlier) - (later < earlier) for (_, earlier), (_, later) in pairs))
    variance = (_kendall(n) - sum(map(_kendall, Counter(xs).values()))) / 18
    variance *= correlation_time([x - slope * i for i, x in enumerate(xs)])
    return change if score - 1 > _Z_DRIFT * math.sqrt(variance) else None


def _kendall(n: int) -> int:
    return n * (n - 1) * (2 * n + 5)


def two_modes(xs: Sequence[float]) -> tuple[float, float] | None:
    """The medians of the lower and the upper cluster of a clearly bimodal sample of times; None for any other.

    The sample is split where the variance between the parts is the largest share η of its total variance: Otsu, "A
    Threshold Selection Method from Gray-Level Histograms", IEEE Transactions on Systems, Man, and Cybernetics 9 (1979).
    That share is 0.64 for a normal distribution, less for one with heavy tails and 0.75 for a uniform one; a sample
    of n exceeds 0.75 + 0.8/√n in fewer than 1 % of cases for these, and for exponential and lognormal ones with σ up to
    1 (simulated, n from 20 to 200). Two normal modes of equal weight exceed it when about six standard deviations apart
    (five for n above 50).

    Each cluster has a tenth of the values, at least three, and they are 2 % of the median apart. The highest 5 % of
    the values do not count for η, so that one interruption does not hide two modes. None for fewer than 20 values.
    """
    n = len(xs)
    if n < _FEWEST_FOR_MODES:
        return None
    ordered = sorted(xs)
    inner = n - n // _OUTLIERS
    # Between 0 and 1, so that no square overflows.
    base, width = ordered[0], ordered[inner - 1] - ordered[0]
    if width == 0:
        return None
    sums = list(accumulate((x - base) / width for x in ordered[:inner]))
    mean = sums[-1] / inner
    variance = math.fsum(((x - base) / width - mean) ** 2 for x in ordered[:inner])

    def between(split: int) -> float:
        low, high = sums[split - 1] / split, (sums[-1] - sums[split - 1]) / (inner - split)
        return split * (inner - split) / inner * (high - low) ** 2

    fewest = max(3, math.ceil(n / _CLUSTER))
    split = max(range(fewest, n - fewest + 1), key=between)
    low, high = median(ordered[:split]), median(ordered[split:])
    clear = between(split) > (0.75 + 0.8 / math.sqrt(n)) * variance
    return (low, high) if clear and high - low >= _APART * abs(median(ordered)) else None
