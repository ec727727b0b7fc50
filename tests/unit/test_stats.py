"""Times' statistics: properties by hypothesis, coverage by brute force and in simulations; memory, drift, modes."""

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
    correlation_time,
    drift,
    estimate_median,
    geometric_mean,
    looks,
    median,
    paired_ratio,
    quantile,
    two_modes,
)
from tests.draws import DRAWS, Draw, at_most, remembering, stopped, student_3

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


@pytest.mark.parametrize(
    ("xs", "q", "expected"),
    [([10, 20], 0.25, 12.5), ([0, 10, 20, 30, 40], 0.9, 36.0), ([7], 0.9, 7), ([3, 1, 2], 0.5, 2)],
)
def test_quantiles_interpolate_linearly(xs: list[float], q: float, expected: float) -> None:
    assert quantile(xs, q) == pytest.approx(expected)


@given(samples, st.floats(0.5, 0.999))
def test_the_interval_is_the_narrowest_that_covers_unless_samples_depend(xs: list[float], confidence: float) -> None:
    found, n, ordered = estimate_median(xs, confidence), len(xs), sorted(xs)
    assert found.low <= found.median <= found.high

    def coverage(depth: int) -> float:
        return 1.0 - 2.0 * sum(math.comb(n, below) for below in range(depth)) / float(2**n)

    enough = [depth for depth in range(1, (n + 1) // 2 + 1) if coverage(depth) >= confidence]
    depth = max(enough, default=1)
    independent = (ordered[depth - 1], ordered[n - depth], pytest.approx(coverage(depth), abs=1e-12))
    if correlation_time(xs) == 1:
        assert (found.low, found.high, found.confidence) == independent
    else:
        assert found.low <= independent[0]
        assert found.high >= independent[1]
        assert found.confidence >= confidence or (found.low, found.high) == (ordered[0], ordered[-1])


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
def test_ranks_and_true_confidence_are_those_of_the_tables(n: int, ranks: tuple[int, int], confidence: float) -> None:
    # Up and down in turn, which no memory of the value before brings about.
    found = estimate_median([x for pair in zip(range(1, n + 1), range(n, 0, -1), strict=True) for x in pair][:n])
    assert (found.low, found.high) == ranks
    assert found.confidence == pytest.approx(confidence, abs=5e-5)


def test_the_extremes_of_a_series_that_rises_all_the_time_cover_less() -> None:
    found = estimate_median(range(12))
    assert (found.low, found.high) == (0, 11)
    assert 0.7 < found.confidence < 0.8  # of three independent samples: 0.75


@pytest.mark.parametrize(
    ("first", "most", "expected"),
    [(6, 40, (6, 12, 24, 40)), (50, 200, (50, 100, 200)), (6, 6, (6,)), (9, 4, (4,)), (1, 1, (1,)), (3, 7, (3, 6, 7))],
)
def test_looks_double_and_end_with_the_most(first: int, most: int, expected: tuple[int, ...]) -> None:
    assert looks(first, most) == expected


@pytest.mark.parametrize(
    ("name", "first", "most", "least"),
    # Six values cannot tell that each remembers the last; twelve can a little, fifty can.
    [
        *((name, 6, 40, 0.94) for name in ("normal", "skewed", "lumpy")),
        ("0.5", 6, 48, 0.82),
        ("0.5", 12, 48, 0.88),
        ("0.5", 50, 200, 0.92),
    ],
)
@pytest.mark.parametrize("width", [0.8, 1.6])
def test_stopping_when_narrow_covers_the_median(name: str, first: int, most: int, least: float, width: float) -> None:
    rng, runs, sizes = random.Random(11), 600, looks(first, most)
    width *= math.sqrt(6 / first)  # so that some of the runs stop at each look
    found = [stopped(DRAWS[name](rng, most), sizes, width, estimate_median) for _ in range(runs)]
    assert sum(not e.low <= 0 <= e.high for e in found) <= at_most(1 - least, runs)


@given(st.lists(times, min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_a_geometric_mean_scales_with_its_unit_and_lies_within(xs: list[float], unit: float) -> None:
    mean = geometric_mean(xs)
    assert min(xs) <= mean <= max(xs)
    assert geometric_mean([x * unit for x in xs]) == pytest.approx(mean * unit, rel=1e-9)
    assert 1 / geometric_mean([1 / x for x in xs]) == pytest.approx(mean, rel=1e-9)


@given(st.lists(times, min_size=1, max_size=5), st.data())
def test_a_weight_of_two_counts_like_two(xs: list[float], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 4), min_size=len(xs), max_size=len(xs)))
    repeated = [x for x, count in zip(xs, counts, strict=True) for _ in range(count)]
    assert geometric_mean(xs, [0.5 * count for count in counts]) == pytest.approx(geometric_mean(repeated))
    assert combine([Estimate(x, 0.9 * x, 1.2 * x, 0.95) for x in xs], counts).median == pytest.approx(
        geometric_mean(repeated)
    )


def test_an_interval_is_as_wide_as_the_weights_of_its_parts() -> None:
    narrow, wide = Estimate(100.0, 100.0, 100.0, 0.95), Estimate(100.0, 100.0 / 1.3, 130.0, 0.95)
    whole = combine([narrow, wide], [3.0, 1.0])
    assert (whole.low, whole.high) == pytest.approx((100.0 * 1.3**-0.25, 100.0 * 1.3**0.25))


@given(st.lists(st.tuples(times, st.floats(0, 0.5), st.floats(0, 1)), min_size=1, max_size=12))
def test_combining_gives_a_geometric_mean_and_no_wider_interval(parts: list[tuple[float, float, float]]) -> None:
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
        lambda: looks(0, 5),
        lambda: looks(5, 0),
        lambda: paired_ratio([]),
        lambda: paired_ratio([1.0, 0.0]),
        lambda: paired_ratio([1.0, math.inf]),
        lambda: paired_ratio([1.0], 1.0),
        lambda: paired_ratio([1.0], resolution=-0.1),
        lambda: paired_ratio([1.0], resolution=math.inf),
        lambda: geometric_mean([]),
        lambda: geometric_mean([1.0, 0.0]),
        lambda: geometric_mean([1.0, math.inf]),
        lambda: geometric_mean([1.0, 2.0], [1.0, 0.0]),
        lambda: geometric_mean([1.0, 2.0], [1.0]),
        lambda: combine([]),
        lambda: combine([Estimate(1.0, 0.0, 2.0, 0.95)]),
        lambda: Estimate(1.0, 2.0, 3.0, 0.95),
        lambda: Estimate(1.0, 1.0, math.nan, 0.95),
        lambda: Estimate(1.0, 1.0, 1.0, 1.0),
    ],
)
def test_invalid_arguments_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"\w"):
        call()


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
