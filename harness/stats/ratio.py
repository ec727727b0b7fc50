"""How many times faster one kernel is than another, from paired measurements. The judge calls it. Trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.stats.bootstrap import lower_end
from harness.stats.estimate import Estimate, antilog, estimate_median
from harness.stats.pseudomedian import estimate_pseudomedian
from harness.stats.series import FEWEST_TO_CORRELATE, correlation_time

_FEWEST_TO_RESAMPLE = 6
# √τ for the median of a Gaussian series with an autocorrelation of ρᵏ, ρ = 0.3: τ = 1 + 2·Σ(2/π)·arcsin(ρᵏ).
_UNSEEN = math.sqrt(1.55)


def paired_ratio(blocks: Sequence[float], confidence: float = 0.95, resolution: float = 0.0) -> Estimate:
    """The median of paired ratios, one per ABBA block and in time order, with its interval.

    On the log scale, so that exchanging the two sides gives the reciprocals. The interval is the hull of two, and its
    confidence that of the first: the order statistics of `estimate_median`, and the block bootstrap of
    `bootstrap.lower_end` with blocks as long as the ratios' `correlation_time`. The bootstrap alone would suffice for
    independent ratios, where it excludes 1 in 2 to 4 % of simulated A/A comparisons. But with an autocorrelation of 0.3
    it does so in 6 to 7 % of them, for 12 to 48 ratios: few blocks vary too little. The hull does so in 3 %.

    Fewer than ten ratios cannot show their correlation. The extremes of six exclude 1 in 8 % of A/A comparisons if it
    is 0.3, so for six to nine the interval is stretched as if it were, beyond the extremes if need be. Below six it
    spans the extremes, with a confidence of 1 − 2^(1−n), which is too low to stop measuring.

    `resolution` is a relative error that all ratios share and repetition cannot reduce: the interval is widened by the
    factor 1 + `resolution` on either side.

    Raises:
        ValueError: `blocks` is empty or contains a number that is not positive and finite, `confidence` is not between
            0 and 1, or `resolution` is negative or not finite.
    """
    logs = _logs(blocks, resolution)
    ranked = estimate_median(logs, confidence)
    down, up = ranked.median - ranked.low, ranked.high - ranked.median
    if len(logs) >= _FEWEST_TO_RESAMPLE:
        length = math.ceil(min(correlation_time(logs), len(logs) / 3))
        down = max(down, ranked.median - lower_end(logs, confidence, length))
        up = max(up, -lower_end([-log for log in logs], confidence, length) - ranked.median)
        if len(logs) < FEWEST_TO_CORRELATE:
            down, up = down * _UNSEEN, up * _UNSEEN
    log_ratio = Estimate(ranked.median, ranked.median - down, ranked.median + up, ranked.confidence)
    return _ratio(log_ratio, resolution)


def steady_ratio(blocks: Sequence[float], confidence: float = 0.95, resolution: float = 0.0) -> Estimate:
    """The pseudomedian of paired ratios of at least six nearly independent blocks, with its interval.

    On the log scale, and with the same `resolution`, as `paired_ratio`.

    Raises:
        ValueError: as `paired_ratio` and `estimate_pseudomedian` do.
    """
    return _ratio(estimate_pseudomedian(_logs(blocks, resolution), confidence), resolution)


def _logs(blocks: Sequence[float], resolution: float) -> list[float]:
    if not all(0 < ratio < math.inf for ratio in blocks) or not 0 <= resolution < math.inf:
        raise ValueError("paired ratios are positive and finite, and their resolution is at least 0")
    return [math.log(ratio) for ratio in blocks]


def _ratio(logs: Estimate, resolution: float) -> Estimate:
    """Convert an estimate of logarithms to one of ratios."""
    shared = math.log1p(resolution)
    low, high = antilog(logs.low - shared), antilog(logs.high + shared)
    return Estimate(antilog(logs.median), low, high, logs.confidence)
