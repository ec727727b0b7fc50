"""Paired ratios: the closed form against all resamples, and how often an A/A comparison finds a difference."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.stats import combine, estimate_median, looks, paired_ratio
from harness.stats.ratio import lower_end, student
from tests.draws import DRAWS, at_most, stopped

# Far enough from each other for no reciprocal or power to make two of them one.
ratios = st.lists(st.integers(1, 10**6).map(lambda k: k / 1000), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.3027),
        (0.95, 5, 2.5706),
        (0.99, 10, 3.1693),
        (0.9, 23, 1.7139),
        (0.95, 63, 1.9983),
    ],
)
def test_students_quantiles_are_those_of_the_tables(confidence: float, freedom: int, t: float) -> None:
    assert student(confidence, freedom) == pytest.approx(t, abs=5e-5)


@given(st.lists(st.integers(0, 6), min_size=4, max_size=7), st.integers(1, 3), st.floats(0.05, 0.95))
def test_the_bootstrap_in_closed_form_is_the_one_of_all_resamples(
    xs: list[int], length: int, confidence: float
) -> None:
    n = len(xs)
    sizes = [length] * (n // length) + ([n % length] if n % length else [])
    assume(n ** len(sizes) <= 4096)
    middles = sorted(
        statistics.median_low(
            [(xs * 2)[start + i] for start, size in zip(starts, sizes, strict=True) for i in range(size)]
        )
        for starts in itertools.product(range(n), repeat=len(sizes))
    )
    tail = statistics.NormalDist().cdf(-math.sqrt(n / (n - 1)) * student(confidence, n - 1))
    allowed = {middles[math.floor(len(middles) * tail * (1 + e))] for e in (-1e-9, 1e-9)}
    assert lower_end(xs, confidence, length) in allowed


@given(ratios, st.floats(0, 0.1))
def test_a_ratio_lies_within_its_interval_and_its_reciprocal_in_the_reciprocal_one(
    xs: list[float], error: float
) -> None:
    found, mirrored = paired_ratio(xs, resolution=error), paired_ratio([1 / x for x in xs], resolution=error)
    assert (mirrored.median, mirrored.low, mirrored.high) == pytest.approx(
        (1 / found.median, 1 / found.high, 1 / found.low), rel=1e-9
    )
    assert found.low <= found.median <= found.high
    exact, ranked = paired_ratio(xs), estimate_median(xs)
    assert (found.low, found.high) == pytest.approx((exact.low / (1 + error), exact.high * (1 + error)))
    assert exact.low * (1 - 1e-9) <= ranked.low
    assert exact.high * (1 + 1e-9) >= ranked.high
    assert found.confidence == ranked.confidence


@pytest.mark.parametrize(("n", "confidence"), [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375)])
def test_few_ratios_span_their_extremes_and_say_how_little_that_covers(n: int, confidence: float) -> None:
    found = paired_ratio([1.0 + 0.01 * i for i in range(n)])
    assert (found.low, found.high, found.confidence) == pytest.approx((1.0, 0.99 + 0.01 * n, confidence))


@pytest.mark.parametrize("n", [6, 8, 9, 12, 24])
@pytest.mark.parametrize("name", ["normal", "student", "0.3"])
@pytest.mark.parametrize("sigma", [0.002, 0.05])
def test_two_equal_kernels_are_told_apart_in_5_percent_of_cases_at_most(name: str, n: int, sigma: float) -> None:
    rng, runs = random.Random(f"{name} {n} {sigma}"), 400
    found = [paired_ratio([math.exp(sigma * x) for x in DRAWS[name](rng, n)]) for _ in range(runs)]
    assert sum(not e.low <= 1 <= e.high for e in found) <= at_most(0.05, runs)


@pytest.mark.parametrize("sigma", [0.003, 0.005, 0.008])
@pytest.mark.parametrize("name", ["normal", "student"])
def test_they_are_not_told_apart_more_often_by_stopping_when_the_interval_is_narrow(name: str, sigma: float) -> None:
    rng, runs = random.Random(f"{name} {sigma}"), 300
    drawn = ([math.exp(sigma * x) for x in DRAWS[name](rng, 40)] for _ in range(runs))
    found = [stopped(xs, looks(6, 40), 0.01, paired_ratio) for xs in drawn]
    assert sum(not e.low <= 1 <= e.high for e in found) <= at_most(0.05, runs)


def test_a_real_difference_is_found() -> None:
    rng = random.Random(5)
    found = [paired_ratio([1.02 * math.exp(0.01 * rng.gauss(0, 1)) for _ in range(24)]) for _ in range(200)]
    assert sum(e.low > 1 for e in found) >= 195


def test_ratios_of_any_size_have_an_answer() -> None:
    wide = paired_ratio([1.7e308, 5e-324, 1.0] * 4, resolution=0.1)
    whole = combine([wide, wide])
    assert 0 < whole.low <= whole.median <= whole.high < math.inf
    constant = paired_ratio([2.0] * 30)
    assert (constant.low, constant.median, constant.high) == pytest.approx((2.0, 2.0, 2.0))
