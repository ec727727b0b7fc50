"""Combines the cases of a grading. Pure, trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from harness import stats
from harness.judge.timing.interface import Timing
from harness.judge.timing.precision import CONFIDENCE, ratio
from harness.verdict import BenchmarkResult, Doubt, DoubtCode, Interval, Speedup


def score(timed: Sequence[BenchmarkResult]) -> Interval:
    """The geometric mean over the benchmark cases, so that no case counts more for being slow."""
    estimates = [
        stats.Estimate(max(b.score.median_ns, 1), max(b.score.low_ns, 1), max(b.score.high_ns, 1), b.score.confidence)
        for b in timed
    ]
    combined = stats.combine(estimates)
    return Interval(
        median_ns=round(combined.median),
        low_ns=math.floor(combined.low),
        high_ns=math.ceil(combined.high),
        confidence=combined.confidence or CONFIDENCE,
    )


def speedups(timing: Timing) -> Iterator[Speedup]:
    """Over all cases: their geometric mean, for every baseline that ran in all of them."""
    for baseline in timing.baselines:
        each = [p.speedup for b in timing.timed for p in b.baselines if p.name == baseline.name]
        if len(each) == len(timing.timed):
            combined = stats.combine([stats.Estimate(r.median, r.low, r.high, r.confidence) for r in each])
            yield Speedup(baseline=baseline.name, sha256=baseline.submission.sha256, ratio=ratio(combined))


def failed_baselines(timing: Timing) -> Iterator[Doubt]:
    """Which baselines there is no speedup over, and why."""
    for each in timing.baselines:
        if each.fault is not None:
            yield Doubt(code=DoubtCode.NO_BASELINE, text=f"baseline {each.name}: {each.fault}")
