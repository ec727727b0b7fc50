"""Whether a sample has two modes, as when a chip changes between two clocks. The judge calls it. Trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from harness.stats.quantile import median

_FEWEST = 20
_APART = 0.02  # of the median
_OUTLIERS = 20  # one value in this many may be an outlier
_CLUSTER = 10  # and a cluster has at least one in this many


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
    if n < _FEWEST:
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
