"""Quantiles of a sample: any quantile, the median. The rest of `harness.stats` calls it. Trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence


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
