"""Combines the results of all benchmark cases: the score and the speedups. Pure, trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness import stats
from harness.judge.timing.interface import TimingMethod
from harness.judge.timing.precision import CONFIDENCE, ratio
from harness.verdict import BenchmarkResult, Doubt, DoubtCode, Interval, Speedup, Timing, Verdict


def score(timed: Sequence[BenchmarkResult]) -> Interval:
    """The weighted geometric mean over the benchmark cases, by which a slow case counts no more than a fast one."""
    estimates = [
        stats.Estimate(max(b.score.median_ns, 1), max(b.score.low_ns, 1), max(b.score.high_ns, 1), b.score.confidence)
        for b in timed
    ]
    combined = stats.combine(estimates, weights(timed))
    return Interval(
        median_ns=round(combined.median),
        low_ns=math.floor(combined.low),
        high_ns=math.ceil(combined.high),
        confidence=combined.confidence or CONFIDENCE,
    )


def weights(timed: Sequence[BenchmarkResult]) -> list[float]:
    """The weight of each case."""
    return [case.weight or 1.0 for case in timed]


def speedups(timing: TimingMethod) -> Iterator[Speedup]:
    """The geometric mean of the speedups over all cases, for every baseline that ran in all of them."""
    for baseline in timing.baselines:
        ratios_by_case = [p.speedup for b in timing.timed for p in b.baselines if p.name == baseline.name]
        if len(ratios_by_case) == len(timing.timed):
            ratios = [stats.Estimate(r.median, r.low, r.high, r.confidence) for r in ratios_by_case]
            combined = stats.combine(ratios, weights(timing.timed))
            yield Speedup(baseline=baseline.name, sha256=baseline.submission.sha256, ratio=ratio(combined))


@dataclass(frozen=True)
class KnownTimes:
    """The times of a baseline's benchmark cases in an earlier grading on this device."""

    baseline: str
    sha256: str
    timing: Timing
    cases: Mapping[str, Interval]
    """The intervals of the cases, by name."""

    @classmethod
    def of(cls, verdict: Verdict) -> KnownTimes:
        """The times of an accepted verdict on a baseline."""
        name, sha256 = verdict.submission.name.partition(".")[0], verdict.submission.sha256
        return cls(name, sha256, verdict.timing, {benchmark.name: benchmark.score for benchmark in verdict.benchmarks})


def known_speedups(verdict: Verdict, known: Sequence[KnownTimes]) -> Iterator[Speedup]:
    """The speedups of an accepted verdict over baselines whose times in all of its cases are known, and were measured
    in the same way.

    The calls did not alternate, so the interval is as wide as both intervals allow.
    """
    for baseline in known:
        pairs = [(baseline.cases[b.name], b.score) for b in verdict.benchmarks if b.name in baseline.cases]
        if verdict.score and baseline.timing == verdict.timing and len(pairs) == len(verdict.benchmarks):
            combined = stats.combine([_quotient(*pair) for pair in pairs], weights(verdict.benchmarks))
            yield Speedup(baseline=baseline.baseline, sha256=baseline.sha256, ratio=ratio(combined), known=True)


def _quotient(baseline: Interval, own: Interval) -> stats.Estimate:
    least = max(own.low_ns, 1)
    confidence = baseline.confidence * own.confidence
    return stats.Estimate(
        max(baseline.median_ns, 1) / max(own.median_ns, least),
        max(baseline.low_ns, 1) / max(own.high_ns, least),
        max(baseline.high_ns, 1) / least,
        confidence,
    )


def failed_baselines(timing: TimingMethod, *, accepted: bool) -> Iterator[Doubt]:
    """The doubts about baselines that failed, and in an accepted verdict about all that `speedups` leaves out."""
    compared = {speedup.baseline for speedup in speedups(timing)} if accepted else set()
    for baseline in timing.baselines:
        if baseline.fault is not None or (accepted and baseline.name not in compared):
            yield no_baseline(baseline.name, baseline.fault or "its calls were too short, or too few, for a ratio")


def no_baseline(name: str, why: str) -> Doubt:
    """The doubt that there is no speedup over this baseline."""
    return Doubt(code=DoubtCode.NO_BASELINE, text=f"baseline {name}: {why}")
