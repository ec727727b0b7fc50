"""Statistics of a series of times: quantiles, autocorrelation, drift, modes, and the sizes for interim looks.

`estimate`, `ratio` and the judge call it. Trusted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, combinations
from operator import mul
from statistics import NormalDist

MIN_FOR_CORRELATION = 10  # fewer values cannot show autocorrelation
_MIN_FOR_DRIFT = 8
_MIN_DRIFT = 0.01  # as a share of the median
_Z_DRIFT = NormalDist().inv_cdf(1 - 0.01 / 2)
_MIN_FOR_MODES = 20
_MIN_GAP = 0.02  # between two modes, as a share of the median
_VALUES_PER_OUTLIER = 20  # one value in this many may be an outlier
_CLUSTERS_MAX = 10  # a cluster has at least one value in this many


def quantile(xs: Sequence[float], q: float) -> float:
    """The `q`-quantile by linear interpolation between order statistics at (n − 1)·q.

    Definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996).

    Raises:
        ValueError: `xs` is empty, or `q` is not within 0 to 1.
    """
    if not xs or not 0 <= q <= 1:
        raise ValueError(f"{len(xs)} values have no quantile {q}")
    ordered = sorted(xs)
    below = math.floor((len(ordered) - 1) * q)
    share = (len(ordered) - 1) * q - below
    if share == 0:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    # Rounding must not move the result outside the two values.
    return min(max(low * (1 - share) + high * share, low), high)


def median(xs: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones.

    Raises:
        ValueError: `xs` is empty.
    """
    return quantile(xs, 0.5)


def looks(first: int, most: int) -> tuple[int, ...]:
    """The sample sizes at which a growing sample is evaluated: `first`, twice that, and so on, and finally `most`.

    If sampling stops as soon as an interval is narrow or excludes 1, each look is another chance to stop by accident.
    With a look after every value, a 95 % interval is certain to exclude the true value eventually: Armitage, McPherson
    and Rowe, "Repeated Significance Tests on Accumulating Data", Journal of the Royal Statistical Society A 132 (1969).
    With doubling there are few looks, each at as many new values as old ones. They cost less coverage than the
    intervals of `estimate_median` have in excess of 95 %.

    Raises:
        ValueError: `first` or `most` is not positive.
    """
    if first < 1 or most < 1:
        raise ValueError(f"sample sizes must be positive, not {first} and {most}")
    sizes, look = [], first
    while look < most:
        sizes.append(look)
        look *= 2
    return (*sizes, most)


def correlation_time(xs: Sequence[float]) -> float:
    """How many consecutive values count as one independent value for the median: at least 1, at most n.

    This is the integrated autocorrelation time 1 + 2·Σρₖ of the signs of the differences from the median, which
    determine the median's error. `xs` is in time order. The result is 1 for fewer than ten values, which cannot show
    autocorrelation, and for constant values. It is biased upwards: for two dozen independent values it is 1.5 on
    average.
    """
    middle = median(xs) if xs else 0.0
    return integrated_autocorrelation([(x > middle) - (x < middle) for x in xs])


def integrated_autocorrelation(xs: Sequence[float]) -> float:
    """The integrated autocorrelation time 1 + 2·Σρₖ of the values, bounded as in `correlation_time`.

    It is estimated by the initial monotone sequence of Geyer, "Practical Markov Chain Monte Carlo", Statistical Science
    7 (1992): pairs ρ₂ₖ + ρ₂ₖ₊₁ are added as long as they are positive, and none counts more than the previous one.
    Autocovariances about the mean of the sample are too small, so the sum over lags up to w is multiplied by
    1 + (2w + 1)/n: Wolff, "Monte Carlo Errors with Less Errors", Computer Physics Communications 156 (2004).
    """
    n = len(xs)
    if n < MIN_FOR_CORRELATION:
        return 1.0
    mean = math.fsum(xs) / n
    deviations = [x - mean for x in xs]
    variance = math.fsum(map(mul, deviations, deviations))
    if variance == 0:
        return 1.0

    def correlation(lag: int) -> float:
        return math.fsum(map(mul, deviations, deviations[lag:])) / variance

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

    The rise is n times the median of the slopes between all pairs: Sen, "Estimates of the Regression Coefficient Based
    on Kendall's Tau", Journal of the American Statistical Association 63 (1968). It is reported if it is at least 1 %,
    and if the test of Mann ("Nonparametric Tests Against Trend", Econometrica 13, 1945) and Kendall (with his
    correction for ties: "Rank Correlation Methods", 4th edition, 1970) finds a trend at the significance level 1 %.
    Autocorrelation can look like a trend, so the variance of the test is multiplied by the correlation time of the
    residuals: Yue and Wang, "The Mann-Kendall Test Modified by Effective Sample Size", Water Resources Management 18
    (2004). `xs` is in time order. There is no result for fewer than eight values, or if the median is not positive.
    """
    n, middle = len(xs), median(xs) if xs else 0.0
    if n < _MIN_FOR_DRIFT or middle <= 0:
        return None
    pairs = list(combinations(enumerate(xs), 2))
    slope = median([(later - earlier) / (j - i) for (i, earlier), (j, later) in pairs])
    change = slope / middle * n
    if abs(change) < _MIN_DRIFT:
        return None
    score = abs(sum((later > earlier) - (later < earlier) for (_, earlier), (_, later) in pairs))
    variance = (_kendall_term(n) - sum(map(_kendall_term, Counter(xs).values()))) / 18
    variance *= correlation_time([x - slope * i for i, x in enumerate(xs)])
    return change if score - 1 > _Z_DRIFT * math.sqrt(variance) else None


def _kendall_term(n: int) -> int:
    """18 times the variance of Kendall's score of n values; subtracted, the correction for n equal values."""
    return n * (n - 1) * (2 * n + 5)


def two_modes(xs: Sequence[float]) -> tuple[float, float] | None:
    """The medians of the lower and the upper cluster of a clearly bimodal sample of times; None for any other sample.

    The sample is split where the variance between the two parts is the largest share η of the total variance: Otsu, "A
    Threshold Selection Method from Gray-Level Histograms", IEEE Transactions on Systems, Man, and Cybernetics 9 (1979).
    It is bimodal if η exceeds 0.75 + 0.8/√n. For a normal distribution η is 0.64, for one with heavy tails less, and
    for a uniform one 0.75. In simulations with n from 20 to 200, fewer than 1 % of the samples of these distributions,
    of exponential ones and of lognormal ones with σ up to 1 were bimodal. Two normal modes of equal weight are found if
    they are about six standard deviations apart, or five for n above 50.

    Each cluster must have a tenth of the values, and at least three. The two medians must differ by 2 % of the median
    of all. The highest 5 % of the values do not count for η, so that one interruption does not hide two modes. There is
    no result for fewer than 20 values.
    """
    n = len(xs)
    if n < _MIN_FOR_MODES:
        return None
    ordered = sorted(xs)
    inner = n - n // _VALUES_PER_OUTLIER
    # The values are scaled to 0 to 1, so that no square overflows.
    base, width = ordered[0], ordered[inner - 1] - ordered[0]
    if width == 0:
        return None
    sums = list(accumulate((x - base) / width for x in ordered[:inner]))
    mean = sums[-1] / inner
    variance = math.fsum(((x - base) / width - mean) ** 2 for x in ordered[:inner])

    def between(split: int) -> float:
        low, high = sums[split - 1] / split, (sums[-1] - sums[split - 1]) / (inner - split)
        return split * (inner - split) / inner * (high - low) ** 2

    fewest = max(3, math.ceil(n / _CLUSTERS_MAX))
    split = max(range(fewest, n - fewest + 1), key=between)
    low, high = median(ordered[:split]), median(ordered[split:])
    bimodal = between(split) > (0.75 + 0.8 / math.sqrt(n)) * variance
    return (low, high) if bimodal and high - low >= _MIN_GAP * abs(median(ordered)) else None
