"""What gives a series away: its memory, its drift, and its modes, found where they are and not where they are not."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats import correlation_time, drift, median, two_modes
from tests.draws import DRAWS, Draw, at_most, remembering, student_3


def test_a_correlation_time_is_one_where_nothing_shows_it() -> None:
    assert correlation_time([]) == correlation_time([1.0] * 50) == correlation_time([1.0, 2.0, 3.0] * 3) == 1.0
    assert correlation_time([1.0, 2.0] * 20) == 1.0


@given(st.lists(st.integers(-1000, 1000), max_size=60))
def test_a_correlation_time_is_of_the_ranks_alone_and_within_its_bounds(xs: list[int]) -> None:
    found = correlation_time(xs)
    assert 1 <= found <= max(1, len(xs))
    assert correlation_time([1e290 * x**3 for x in xs]) == correlation_time([-x for x in xs]) == found


@pytest.mark.parametrize(
    ("rho", "n", "low", "high"),
    # The truth: 1 + 2·Σ(2/π)·arcsin(ρᵏ) = 1, 1.55, 2.31 and 6.39; where few values are wrong, they are so upwards.
    [
        (0.0, 12, 1.0, 1.7),
        (0.0, 48, 1.0, 1.45),
        (0.3, 24, 1.5, 2.2),
        (0.5, 24, 2.1, 3.0),
        (0.5, 96, 2.2, 3.0),
        (0.8, 96, 5.5, 8.0),
        (-0.5, 24, 1.0, 1.2),
    ],
)
def test_a_correlation_time_is_that_of_a_gaussian_series(rho: float, n: int, low: float, high: float) -> None:
    rng, draw = random.Random(3), remembering(rho)
    found = [correlation_time(draw(rng, n)) for _ in range(300)]
    assert low <= statistics.fmean(found) <= high
    assert rho > 0 or max(found) < 6.5


UNIMODAL: dict[str, Draw] = {
    "uniform": lambda rng, n: [1 + rng.random() for _ in range(n)],
    "normal": lambda rng, n: [10 + x for x in DRAWS["normal"](rng, n)],
    "heavy": lambda rng, n: [100 + x for x in student_3(rng, n)],
    "exponential": lambda rng, n: [rng.expovariate(1) for _ in range(n)],
    "lognormal": lambda rng, n: [rng.lognormvariate(0, 0.5) for _ in range(n)],
    "outliers": lambda rng, n: [*(10 + x for x in DRAWS["normal"](rng, n - 2)), 40, 90],
    "drifting": lambda rng, n: [100 + i / n * 10 + rng.gauss(0, 1) for i in range(n)],
}


@pytest.mark.parametrize("name", UNIMODAL)
@pytest.mark.parametrize("n", [20, 30, 60, 200])
def test_one_mode_is_not_two(name: str, n: int) -> None:
    rng, runs = random.Random(f"{name} {n}"), 300
    assert sum(two_modes(UNIMODAL[name](rng, n)) is not None for _ in range(runs)) <= at_most(0.01, runs)


@pytest.mark.parametrize(
    ("share", "apart", "n"), [(0.5, 10, 20), (0.5, 8, 30), (0.2, 12, 60), (0.5, 5, 200), (0.85, 14, 200)]
)
def test_two_modes_are_found_where_they_are_and_an_outlier_does_not_hide_them(share: float, apart: int, n: int) -> None:
    rng, runs = random.Random(2), 100
    upper = round(share * (n - 1))
    drawn = [[100 + rng.gauss(0, 1) + apart * (i < upper) for i in range(n - 1)] for _ in range(runs)]
    found = [modes for xs in drawn if (modes := two_modes([*xs, 1000.0]))]
    assert len(found) >= 0.9 * runs
    assert all(modes == pytest.approx((100, 100 + apart), abs=1.5) for modes in found)


@pytest.mark.parametrize(
    ("xs", "expected"),
    [
        ([100.0] * 12 + [200.0] * 8, (100, 200)),
        ([100.0] * 12 + [101.9] * 8, None),  # not 2 % apart
        ([100.0] * 12 + [200.0] * 7, None),  # 19 values
        ([100.0] * 18 + [200.0] * 2, None),  # two outliers
        ([0.0] * 20, None),
        ([], None),
        ([1e307] * 12 + [1e308] * 12, (1e307, 1e308)),
    ],
)
def test_two_modes_are_far_apart_and_have_both_several_values(xs: list[float], expected: object) -> None:
    assert two_modes(xs) == expected


@given(st.lists(st.floats(0, 1e300), max_size=60))
def test_modes_and_drift_of_anything_are_numbers_or_none(xs: list[float]) -> None:
    modes, change = two_modes(xs), drift(xs)
    assert modes is None or min(xs) <= modes[0] < modes[1] <= max(xs)
    assert change is None or 0.01 <= abs(change) < math.inf


@pytest.mark.parametrize(
    ("name", "share"),
    # Not quite the 1 % of the test where each value remembers the last, which few values cannot show.
    [("normal", 0.01), ("student", 0.01), ("skewed", 0.01), ("0.3", 0.03), ("0.5", 0.05)],
)
@pytest.mark.parametrize("n", [8, 12, 32])
def test_noise_does_not_drift(name: str, share: float, n: int) -> None:
    rng, runs = random.Random(f"{name} {n}"), 200
    found = sum(drift([100 + 5 * x for x in DRAWS[name](rng, n)]) is not None for _ in range(runs))
    assert found <= at_most(share, runs)


@pytest.mark.parametrize(("n", "change", "sigma"), [(16, 0.2, 0.01), (24, -0.06, 0.01), (40, 0.02, 0.003)])
def test_a_drift_is_found_with_its_size_whatever_an_outlier_says(n: int, change: float, sigma: float) -> None:
    rng, runs = random.Random(1), 60
    drawn = [[50 * (1 + change * i / n + sigma * rng.gauss(0, 1)) for i in range(n)] for _ in range(runs)]
    found = [moved for xs in drawn if (moved := drift([*xs[: n // 2], 500, *xs[n // 2 + 1 :]])) is not None]
    assert len(found) >= 0.9 * runs
    assert median(found) == pytest.approx(change / (1 + change / 2), rel=0.15)


@pytest.mark.parametrize(
    ("xs", "expected"),
    [
        ([1.0 + i for i in range(7)], None),  # too few
        ([1000.0 + i for i in range(9)], None),  # less than 1 %
        ([5.0] * 20, None),
        ([0.0] * 9 + [1.0], None),
        # The middle two of 36 slopes are 1/4 and 2/7. Without its ties the score of 24 would be no trend at 1 %.
        ([1.0] * 5 + [2.0] * 2 + [3.0] * 2, 9 * (1 / 4 + 2 / 7) / 2),
        ([1.0] * 5 + [2.0] * 3 + [1.0], None),
        ([], None),
    ],
)
def test_a_drift_needs_values_a_size_and_a_trend(xs: list[float], expected: float | None) -> None:
    assert drift(xs) == (None if expected is None else pytest.approx(expected))
