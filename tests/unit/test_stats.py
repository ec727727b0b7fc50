"""Times' statistics: properties by hypothesis, coverage against brute force and against seeded simulations."""

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
    estimate_median,
    geometric_mean,
    looks,
    median,
    paired_ratio,
    quantile,
)
from tests.draws import DRAWS, at_most, stopped

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
def test_the_interval_is_the_narrowest_that_covers_and_wider_where_samples_depend_on_each_other(
    xs: list[float], confidence: float
) -> None:
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
def test_the_ranks_and_the_true_confidence_are_those_of_the_tables(
    n: int, ranks: tuple[int, int], confidence: float
) -> None:
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
def test_stopping_at_a_look_when_the_interval_is_narrow_still_covers_the_median(
    name: str, first: int, most: int, least: float, width: float
) -> None:
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
def test_what_has_no_answer_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"\w"):
        call()
