"""Times' statistics: properties by hypothesis, coverage against brute force and against a simulation."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats import (
    Estimate,
    combine,
    estimate_median,
    geometric_mean,
    median,
    median_interval,
    quantile,
    spread,
)

values = st.floats(-1e12, 1e12)
samples = st.lists(values, min_size=1, max_size=60)
times = st.floats(1e-3, 1e12)


@given(samples)
def test_the_median_is_the_one_of_the_standard_library(xs: list[float]) -> None:
    assert median(xs) == pytest.approx(statistics.median(xs), rel=1e-12, abs=1e-9)


@given(samples, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_and_stay_among_the_samples(xs: list[float], p: float, q: float) -> None:
    low, high = sorted((p, q))
    assert min(xs) <= quantile(xs, low) <= max(xs)
    assert quantile(xs, low) <= quantile(xs, high) + 1e-9 * max(map(abs, xs))
    assert (quantile(xs, 0), quantile(xs, 1)) == (min(xs), max(xs))
    assert spread(xs) >= -1e-9 * max(map(abs, xs))


@given(st.lists(values, min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(xs: list[float], shuffler: random.Random) -> None:
    mixed = list(xs)
    shuffler.shuffle(mixed)
    assert (quantile(mixed, 0.3), estimate_median(mixed)) == (quantile(xs, 0.3), estimate_median(xs))


@pytest.mark.parametrize(
    ("xs", "q", "expected"),
    [([10, 20], 0.25, 12.5), ([0, 10, 20, 30, 40], 0.9, 36.0), ([7], 0.9, 7), ([3, 1, 2], 0.5, 2)],
)
def test_quantiles_interpolate_linearly(xs: list[float], q: float, expected: float) -> None:
    assert quantile(xs, q) == pytest.approx(expected)


def test_one_outlier_does_not_move_the_spread_far() -> None:
    assert spread([*range(101), 1e9]) == pytest.approx(spread(range(101)), abs=1.0)


@given(samples, st.floats(0.5, 0.999))
def test_the_interval_holds_the_median_and_is_the_narrowest_that_covers(xs: list[float], confidence: float) -> None:
    found, n, ordered = estimate_median(xs, confidence), len(xs), sorted(xs)
    assert (found.low, found.high) == median_interval(xs, confidence)
    assert found.low <= found.median <= found.high

    def coverage(depth: int) -> float:
        return 1.0 - 2.0 * sum(math.comb(n, below) for below in range(depth)) / float(2**n)

    enough = [depth for depth in range(1, (n + 1) // 2 + 1) if coverage(depth) >= confidence]
    depth = max(enough, default=1)
    assert (found.low, found.high) == (ordered[depth - 1], ordered[n - depth])
    assert found.confidence == pytest.approx(coverage(depth), abs=1e-12)


@pytest.mark.parametrize(
    ("n", "ranks", "confidence"),
    # The usual table of order statistics for a median at 95 %.
    [
        (1, (1, 1), 0.0),
        (2, (1, 2), 0.5),
        (5, (1, 5), 0.9375),
        (6, (1, 6), 0.96875),
        (10, (2, 9), 0.9785),
        (20, (6, 15), 0.9586),
    ],
)
def test_the_ranks_and_the_true_confidence_are_those_of_the_tables(
    n: int, ranks: tuple[int, int], confidence: float
) -> None:
    found = estimate_median(range(1, n + 1))
    assert (found.low, found.high) == ranks
    assert found.confidence == pytest.approx(confidence, abs=5e-5)


def test_the_interval_covers_the_true_median_of_a_skewed_distribution_as_often_as_it_says() -> None:
    draw, runs = random.Random(7), 2000
    intervals = [estimate_median([draw.lognormvariate(0, 1) for _ in range(25)]) for _ in range(runs)]
    covered = sum(found.low <= 1.0 <= found.high for found in intervals) / runs
    assert covered == pytest.approx(intervals[0].confidence, abs=0.02)


@given(st.lists(times, min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_a_geometric_mean_scales_with_its_unit_and_lies_within(xs: list[float], unit: float) -> None:
    mean = geometric_mean(xs)
    assert min(xs) <= mean <= max(xs)
    assert geometric_mean([x * unit for x in xs]) == pytest.approx(mean * unit, rel=1e-9)
    assert 1 / geometric_mean([1 / x for x in xs]) == pytest.approx(mean, rel=1e-9)


@given(st.lists(st.tuples(times, st.floats(0, 0.5), st.floats(0, 1)), min_size=1, max_size=12))
def test_combining_gives_the_geometric_mean_within_an_interval_no_wider_than_the_widest(
    parts: list[tuple[float, float, float]],
) -> None:
    estimates = [Estimate(middle, middle * (1 - down), middle * (1 + up), 0.95) for middle, down, up in parts]
    whole = combine(estimates)
    assert whole.median == pytest.approx(geometric_mean([e.median for e in estimates]))
    assert whole.low <= whole.median <= whole.high
    assert whole.median / whole.low <= max(e.median / e.low for e in estimates) * (1 + 1e-9)
    assert whole.high / whole.median <= max(e.high / e.median for e in estimates) * (1 + 1e-9)


def test_four_equal_intervals_combine_to_one_of_half_their_width_on_each_side_of_the_log_scale() -> None:
    whole = combine(
        [Estimate(100.0, 100.0 / 1.21, 100.0 * 1.44, 0.95)] * 3 + [Estimate(100.0, 100.0 / 1.21, 144.0, 0.9)]
    )
    assert whole.low == pytest.approx(100 / 1.1)
    assert whole.high == pytest.approx(100 * 1.2)
    assert whole.confidence == 0.9


@pytest.mark.parametrize(
    "call",
    [
        lambda: quantile([], 0.5),
        lambda: quantile([1.0], 1.5),
        lambda: estimate_median([]),
        lambda: estimate_median([1.0], 1.0),
        lambda: geometric_mean([]),
        lambda: geometric_mean([1.0, 0.0]),
        lambda: geometric_mean([1.0, math.inf]),
        lambda: combine([]),
        lambda: combine([Estimate(1.0, 0.0, 2.0, 0.95)]),
        lambda: Estimate(1.0, 2.0, 3.0, 0.95),
        lambda: Estimate(1.0, 1.0, math.nan, 0.95),
        lambda: Estimate(1.0, 1.0, 1.0, 1.0),
    ],
)
def test_what_has_no_answer_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"\w"):
        call()
