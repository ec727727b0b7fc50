"""Pools several estimates of one positive quantity, such as the times from repeated gradings of a source.

`leaderboard.record.pooling` calls it. Trusted, pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from statistics import NormalDist
from typing import NamedTuple

from harness.stats.estimate import Estimate, antilog


class UncheckedEstimate(NamedTuple):
    """The fields of an `Estimate`. It is not validated, since pooling needs one for each grading."""

    median: float
    low: float
    high: float
    confidence: float


_CONFIDENCE = 0.95  # of the interval of a pooled estimate
_MIN_DEVIATION = 1e-6  # the smallest standard deviation of a logarithm that is believed


def pool(estimates: Sequence[UncheckedEstimate]) -> Estimate:
    """The random-effects mean of the logarithms; a single estimate is returned unchanged.

    DerSimonian and Laird, "Meta-Analysis in Clinical Trials", Controlled Clinical Trials 7 (1986). Each estimate has
    the within-estimate variance that its interval implies, (log(high / low) / 2z)² with the normal quantile z of its
    own confidence. All share a between-estimate variance τ², which is the scatter in excess of those intervals, from
    the expected value of Cochran's Q. Each estimate is weighted by the inverse of the sum of both variances. So
    estimates that agree narrow the interval, those that disagree widen it, and none is treated as an outlier.

    The interval is that of a normal distribution, so it is too narrow if a few estimates disagree by more than their
    own intervals. In simulations with two to eight estimates, the 95 % interval covers the true value in 96 % of cases
    if τ is 0, in 87 to 91 % if τ equals the standard deviation within estimates, and in 78 to 91 % if τ is twice as
    large. The interval of a single estimate covers it in 81 % and 60 % of the latter two cases.

    Raises:
        ValueError: `estimates` is empty, a bound is not positive, or a confidence is not between 0 and 1.
    """
    if not estimates or not all(estimate.low > 0 for estimate in estimates):
        raise ValueError("pooling needs estimates with positive bounds, at least one")
    if len(estimates) == 1:
        return Estimate(*estimates[0])
    logs = [math.log(estimate.median) for estimate in estimates]
    within = [max(math.log(x.high / x.low) / (2 * _z(x.confidence)), _MIN_DEVIATION) ** 2 for x in estimates]
    between = _between_variance(logs, within)
    mean, total = _weighted_mean(logs, [1 / (variance + between) for variance in within])
    half_width = _z(_CONFIDENCE) / math.sqrt(total)
    return Estimate(antilog(mean), antilog(mean - half_width), antilog(mean + half_width), _CONFIDENCE)


def _between_variance(logs: Sequence[float], within: Sequence[float]) -> float:
    """The between-estimate variance τ², at least 0."""
    weights = [1 / variance for variance in within]
    mean, total = _weighted_mean(logs, weights)
    cochran_q = sum([weight * (log - mean) ** 2 for weight, log in zip(weights, logs, strict=True)])
    scale = total - sum(map(mul, weights, weights)) / total
    # The scale is rounded to 0 if one weight is far larger than all others.
    return max(0.0, (cochran_q - len(logs) + 1) / scale) if scale > 0 else 0.0


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """The weighted mean, and the sum of the weights."""
    total = sum(weights)
    return sum(map(mul, weights, values)) / total, total


@lru_cache(maxsize=64)
def _z(confidence: float) -> float:
    """How many standard deviations on either side of the mean contain this share of a normal distribution."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is between 0 and 1, not {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)
