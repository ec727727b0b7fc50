"""Pooling: numbers worked out by hand; by simulation, what luck is worth and how often the interval is right."""

from __future__ import annotations

import math
import random

import pytest

from harness.stats import Estimate, pool

Z = 1.959963984540054


def near(log: float, sigma: float, confidence: float = 0.95, z: float = Z) -> Estimate:
    """An estimate with this mean and standard deviation on the log scale."""
    return Estimate(math.exp(log), math.exp(log - z * sigma), math.exp(log + z * sigma), confidence)


def logs(found: Estimate) -> tuple[float, float]:
    """Mean and standard error of an interval of 95 %, on the log scale."""
    return math.log(found.median), math.log(found.high / found.low) / (2 * Z)


def test_one_estimate_stands_as_it_is() -> None:
    one = Estimate(100.0, 93.0, 128.0, 0.836)
    assert pool([one]) == one


@pytest.mark.parametrize(
    ("estimates", "mean", "error"),
    [
        # Equal ones have no variance between them: 1/√(1/σ² + 1/σ²).
        ([(0.0, 0.1), (0.0, 0.1)], 0.0, 0.1 / math.sqrt(2)),
        # Weights 100 and 25, Q = 0.2 < 1, so τ² = 0: mean 25 × 0.1 / 125.
        ([(0.0, 0.1), (0.1, 0.2)], 0.02, 1 / math.sqrt(125)),
        # Weights 10,000 each, mean 0.2, Q = 800, C = 20,000 − 10,000: τ² = 799 / 10,000.
        ([(0.0, 0.01), (0.4, 0.01)], 0.2, math.sqrt((0.0001 + 0.0799) / 2)),
        # Σw = 225, Σwy = 27.5, mean 0.12222; Q = 100·0.014938 + 100·0.031605 + 25·0.049383 = 5.88889;
        # C = 225 − 20,625/225 = 133.3333; τ² = 3.88889/133.3333 = 0.0291667.
        # Weights 1/0.0391667 = 25.53191 (twice) and 1/0.0691667 = 14.45783: Σ = 65.52166, Σwy = 6.21379.
        ([(0.0, 0.1), (0.3, 0.1), (-0.1, 0.2)], 6.21379 / 65.52166, 1 / math.sqrt(65.52166)),
    ],
)
def test_by_hand(estimates: list[tuple[float, float]], mean: float, error: float) -> None:
    assert logs(pool([near(*estimate) for estimate in estimates])) == pytest.approx((mean, error), abs=1e-6)


def test_each_interval_counts_by_its_own_confidence() -> None:
    """1.0 standard deviation on either side hold 68.27 %: the same knowledge, said with another confidence."""
    narrow = near(0.0, 0.1, confidence=0.6826894921370859, z=1.0)
    assert logs(pool([narrow, near(0.1, 0.2)])) == pytest.approx((0.02, 1 / math.sqrt(125)))
    assert pool([narrow, narrow]).confidence == 0.95


def test_exact_times_can_be_pooled_too() -> None:
    same = pool([Estimate(50.0, 50.0, 50.0, 0.95)] * 3)
    assert same.low <= 50.0 <= same.high < 50.001
    apart = pool([Estimate(50.0, 50.0, 50.0, 0.95), Estimate(60.0, 60.0, 60.0, 0.95)])
    assert apart.median == pytest.approx(math.sqrt(3000))
    assert apart.low < 50 < 60 < apart.high


@pytest.mark.parametrize("estimates", [[], [Estimate(1.0, 0.0, 2.0, 0.95)] * 2, [Estimate(1.0, 0.5, 2.0, 0.0)] * 2])
def test_what_cannot_be_pooled(estimates: list[Estimate]) -> None:
    with pytest.raises(ValueError, match=r"pool|confidence"):
        pool(estimates)


def gradings(draw: random.Random, count: int, between: float, within: float) -> list[Estimate]:
    """Gradings of a kernel that truly takes 1, on a machine whose state moves the time by `between`."""
    found = []
    for _ in range(count):
        sigma = within * math.exp(draw.gauss(0, 0.3))
        found.append(near(draw.gauss(0, math.hypot(between, sigma)), sigma))
    return found


def test_regrading_until_lucky_gains_little_where_the_best_of_eight_gained_a_sixth() -> None:
    """As on a noisy CPU, where gradings scatter by 12 %: the best of eight lies 16 % below the truth (0.17 in logs)."""
    draw, best, pooled, stopped = random.Random(5), [], [], []
    for _ in range(1500):
        found = gradings(draw, 8, between=0.1, within=0.06)
        best.append(min(math.log(estimate.median) for estimate in found))
        so_far = [math.log(pool(found[:count]).median) for count in range(1, 9)]
        pooled.append(so_far[-1])
        # An author who looks after each grading, and stops once it went well; the bar is the one that gains most.
        stopped.append(next((log for log in so_far if log < -0.02), so_far[-1]))
    gain = {name: -sum(logs) / len(logs) for name, logs in (("best", best), ("all", pooled), ("stopped", stopped))}
    assert gain["best"] > 0.15
    assert abs(gain["all"]) < 0.01, "eight gradings, whatever they say, gain nothing"
    assert gain["stopped"] < 0.06, "and who stops in time gains 5 %, which no pooling of honest numbers can prevent"


@pytest.mark.parametrize(
    ("between", "count", "least", "most"),
    [(0.0, 2, 0.94, 0.985), (0.0, 8, 0.94, 0.985), (1.0, 2, 0.85, 0.96), (1.0, 8, 0.88, 0.96), (2.0, 8, 0.88, 0.96)],
)
def test_the_interval_covers_about_what_it_claims(between: float, count: int, least: float, most: float) -> None:
    """`between` in units of the scatter within a grading; the interval of a single grading covers less."""
    draw = random.Random(6)
    found = [gradings(draw, count, 0.05 * between, 0.05) for _ in range(1500)]
    covered = sum(pooled.low <= 1 <= pooled.high for pooled in map(pool, found)) / len(found)
    single = sum(first.low <= 1 <= first.high for first, *_ in found) / len(found)
    assert least <= covered <= most
    assert covered > single - 0.01
