"""Combines several estimates of one positive quantity: the repeated gradings of a source. Trusted, pure.

The ranking calls it, through `leaderboard.record.pooling`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from statistics import NormalDist
from typing import NamedTuple

from harness.stats.estimate import Estimate, antilog


class Measured(NamedTuple):
    """What pooling needs of an estimate, which it has checked: cheaper to make than an `Estimate`."""

    median: float
    low: float
    high: float
    confidence: float


_FINEST = 1e-6  # relative: no interval of a time is believed to be narrower


def pool(estimates: Sequence[Measured], confidence: float = 0.95) -> Estimate:
    """The random-effects mean of the logarithms, as an estimate; a single estimate is returned as it is.

    DerSimonian and Laird, "Meta-Analysis in Clinical Trials", Controlled Clinical Trials 7 (1986). Each estimate has
    the variance that its interval implies, (log(high / low) / 2z)² with the normal quantile z of its own confidence,
    and all share a between-estimate variance τ²: the scatter in excess of those intervals, by the moments of Cochran's
    Q. Each is weighted by the inverse of the sum of both. So estimates that agree narrow the interval, those that
    disagree widen it, and none is singled out.

    The interval is that of a normal distribution, so it is too narrow if a few estimates disagree by more than their
    own intervals. Simulated, a nominal 95 % cover 96 % if there is no variance between estimates, 87 to 91 % (two to
    eight estimates) if it equals that within, and 78 to 91 % if τ is twice as large; the interval of a single estimate
    covers 81 and 60 % there.

    Raises:
        ValueError: `estimates` is empty, a bound is not positive, or a confidence is not between 0 and 1.
    """
    if not estimates or not all(estimate.low > 0 for estimate in estimates):
        raise ValueError("pooling needs estimates with positive bounds, at least one")
    if len(estimates) == 1:
        return Estimate(*estimates[0])
    logs = [math.log(estimate.median) for estimate in estimates]
    within = [max(math.log(x.high / x.low) / (2 * _quantile(x.confidence)), _FINEST) ** 2 for x in estimates]
    between = _between(logs, within)
    mean, total = _mean(logs, [1 / (variance + between) for variance in within])
    reach = _quantile(confidence) / math.sqrt(total)
    return Estimate(antilog(mean), antilog(mean - reach), antilog(mean + reach), confidence)


def _between(logs: Sequence[float], within: Sequence[float]) -> float:
    """The variance τ² between the estimates, at least 0."""
    weights = [1 / variance for variance in within]
    mean, total = _mean(logs, weights)
    scatter = sum([weight * (log - mean) ** 2 for weight, log in zip(weights, logs, strict=True)])
    scale = total - sum(map(mul, weights, weights)) / total
    return max(0.0, (scatter - len(logs) + 1) / scale) if scale > 0 else 0.0  # 0: rounded, all but one have no weight


def _mean(logs: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """The weighted mean, and the sum of the weights."""
    total = sum(weights)
    return sum(map(mul, weights, logs)) / total, total


@lru_cache(maxsize=64)
def _quantile(confidence: float) -> float:
    """How many standard deviations on either side of the mean contain this share of a normal distribution."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is between 0 and 1, not {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)
