"""Paired ratios, pseudomedians and pooling: against closed forms, published examples, and in simulations."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.stats import (
    Estimate,
    UncheckedEstimate,
    combine,
    estimate_median,
    estimate_pseudomedian,
    looks,
    paired_ratio,
    pool,
    steady_ratio,
)
from harness.stats.ratio import bootstrap_lower_end, student_quantile
from harness.stats.series import integrated_autocorrelation
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
    assert student_quantile(confidence, freedom) == pytest.approx(t, abs=5e-5)


@given(st.lists(st.integers(0, 6), min_size=4, max_size=7), st.integers(1, 3), st.floats(0.05, 0.95))
def test_the_closed_form_is_the_bootstrap_of_all_resamples(xs: list[int], length: int, confidence: float) -> None:
    n = len(xs)
    sizes = [length] * (n // length) + ([n % length] if n % length else [])
    assume(n ** len(sizes) <= 4096)
    middles = sorted(
        statistics.median_low(
            [(xs * 2)[start + i] for start, size in zip(starts, sizes, strict=True) for i in range(size)]
        )
        for starts in itertools.product(range(n), repeat=len(sizes))
    )
    tail = statistics.NormalDist().cdf(-math.sqrt(n / (n - 1)) * student_quantile(confidence, n - 1))
    allowed = {middles[math.floor(len(middles) * tail * (1 + e))] for e in (-1e-9, 1e-9)}
    assert bootstrap_lower_end(xs, confidence, length) in allowed


@given(ratios, st.floats(0, 0.1))
def test_a_ratio_lies_within_its_interval_and_its_reciprocal_likewise(xs: list[float], error: float) -> None:
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
def test_equal_kernels_differ_in_at_most_5_percent_of_cases(name: str, n: int, sigma: float) -> None:
    rng, runs = random.Random(f"{name} {n} {sigma}"), 400
    found = [paired_ratio([math.exp(sigma * x) for x in DRAWS[name](rng, n)]) for _ in range(runs)]
    assert sum(not e.low <= 1 <= e.high for e in found) <= at_most(0.05, runs)


@pytest.mark.parametrize("sigma", [0.003, 0.005, 0.008])
@pytest.mark.parametrize("name", ["normal", "student"])
def test_stopping_early_does_not_distinguish_equal_kernels_more_often(name: str, sigma: float) -> None:
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


# ---- pseudomedians

TICK_NS = 32


def test_the_published_example() -> None:
    # Hollander, Wolfe and Chicken, table 3.1: θ is −0.46, and −0.786 to −0.010 covers it with 96 %. We round outwards.
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    found = estimate_pseudomedian([y - x for x, y in zip(before, after, strict=True)])
    assert found.median == pytest.approx(-0.46)
    assert (found.low, found.high) == (pytest.approx(-0.806), pytest.approx(0.035))


@pytest.mark.parametrize("n", range(6, 15))
def test_the_rank_is_at_most_that_of_all_signs(n: int) -> None:
    """Of values without memory, whose ranks alternate: the exact distribution of Wilcoxon's statistic."""
    values = [float(x) for x in range(1, n + 1)]
    mixed = [x for pair in itertools.zip_longest(values[: n // 2], values[: n // 2 - 1 : -1]) for x in pair if x]
    assert integrated_autocorrelation(mixed) == 1
    found = estimate_pseudomedian(mixed)
    means = sorted((a + b) / 2 for i, a in enumerate(mixed) for b in mixed[i:])
    sums = sorted(
        sum(k for k, chosen in enumerate(signs, 1) if chosen) for signs in itertools.product((0, 1), repeat=n)
    )
    exact = next(s for s in sums if sum(t <= s for t in sums) > 0.025 * len(sums))  # of this rank, or one more
    assert means[max(0, exact - 2)] <= found.low <= means[exact]
    assert found.low + found.high == pytest.approx(2 * found.median)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=6, max_size=40), st.integers(-5, 5), st.integers(1, 9))
def test_it_moves_with_the_values_and_lies_within_its_interval(xs: list[int], shift: int, factor: int) -> None:
    found, moved = estimate_pseudomedian(xs), estimate_pseudomedian([factor * x + shift for x in xs])
    assert min(xs) <= found.low <= found.median <= found.high <= max(xs)
    expected = [factor * v + shift for v in (found.low, found.median, found.high)]
    assert [moved.low, moved.median, moved.high] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "n"), [*((name, n) for name in ("normal", "student", "lumpy") for n in (10, 24, 60)), ("0.3", 48)]
)
def test_its_interval_misses_the_truth_in_5_percent_of_cases_at_most(name: str, n: int) -> None:
    rng, runs = random.Random(f"{name} {n}"), 600
    found = [estimate_pseudomedian(DRAWS[name](rng, n)) for _ in range(runs)]
    assert sum(not e.low <= 0 <= e.high for e in found) <= at_most(0.05, runs)


@pytest.mark.parametrize("true_ns", [1_000, 1_008.5, 2_011, 5_740, 5_744, 5_750])
def test_of_blocks_it_is_finer_than_the_ticks_of_a_clock(true_ns: float) -> None:
    starts = [TICK_NS * ((37 * k + 0.5) % 101) / 101 for k in range(100)]
    found = [TICK_NS * (int((at + true_ns) // TICK_NS) - int(at // TICK_NS)) for at in starts]
    blocks = [(a + b) / 2 for a, b in zip(found[::2], found[1::2], strict=True)]
    assert abs(estimate_pseudomedian(blocks).median - true_ns) <= 0.25 * TICK_NS


def test_where_neighbours_are_alike_throughout_the_extremes_cover_less() -> None:
    found = estimate_pseudomedian(range(12))
    assert (found.low, found.high) == (0, 11)
    assert found.confidence < 0.95


@pytest.mark.parametrize(("xs", "confidence"), [([1.0] * 5, 0.95), ([], 0.95), ([1.0] * 9, 1.0)])
def test_too_few_values_have_no_interval(xs: list[float], confidence: float) -> None:
    with pytest.raises(ValueError, match="no interval"):
        estimate_pseudomedian(xs, confidence)


def test_a_steady_ratio_mirrors_its_reciprocal_and_is_wider_by_the_resolution() -> None:
    rng = random.Random(6)
    ratios = [1.5 * (1 + 0.01 * rng.gauss(0, 1)) for _ in range(30)]
    found, mirrored, wider = (
        steady_ratio(ratios),
        steady_ratio([1 / x for x in ratios]),
        steady_ratio(ratios, 0.95, 0.1),
    )
    assert (1 / mirrored.median, 1 / mirrored.high, 1 / mirrored.low) == pytest.approx(
        (found.median, found.low, found.high)
    )
    assert (wider.low, wider.high) == pytest.approx((found.low / 1.1, found.high * 1.1))
    with pytest.raises(ValueError, match="positive and finite"):
        steady_ratio([*ratios, 0.0])


# ---- pooling

Z = 1.959963984540054


def near(log: float, sigma: float, confidence: float = 0.95, z: float = Z) -> UncheckedEstimate:
    """An estimate with this mean and standard deviation on the log scale."""
    return UncheckedEstimate(math.exp(log), math.exp(log - z * sigma), math.exp(log + z * sigma), confidence)


def logs(found: Estimate) -> tuple[float, float]:
    """Mean and standard error of an interval of 95 %, on the log scale."""
    return math.log(found.median), math.log(found.high / found.low) / (2 * Z)


def test_one_estimate_stands_as_it_is() -> None:
    one = UncheckedEstimate(100.0, 93.0, 128.0, 0.836)
    assert pool([one]) == Estimate(*one)


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
def test_pooling_agrees_with_hand_results(estimates: list[tuple[float, float]], mean: float, error: float) -> None:
    assert logs(pool([near(*estimate) for estimate in estimates])) == pytest.approx((mean, error), abs=1e-6)


def test_each_interval_counts_by_its_own_confidence() -> None:
    """1.0 standard deviation on either side hold 68.27 %: the same knowledge, said with another confidence."""
    narrow = near(0.0, 0.1, confidence=0.6826894921370859, z=1.0)
    assert logs(pool([narrow, near(0.1, 0.2)])) == pytest.approx((0.02, 1 / math.sqrt(125)))
    assert pool([narrow, narrow]).confidence == 0.95


def test_exact_times_can_be_pooled_too() -> None:
    same = pool([UncheckedEstimate(50.0, 50.0, 50.0, 0.95)] * 3)
    assert same.low <= 50.0 <= same.high < 50.001
    apart = pool([UncheckedEstimate(50.0, 50.0, 50.0, 0.95), UncheckedEstimate(60.0, 60.0, 60.0, 0.95)])
    assert apart.median == pytest.approx(math.sqrt(3000))
    assert apart.low < 50 < 60 < apart.high


@pytest.mark.parametrize(
    "estimates", [[], [UncheckedEstimate(1.0, 0.0, 2.0, 0.95)] * 2, [UncheckedEstimate(1.0, 0.5, 2.0, 0.0)] * 2]
)
def test_invalid_estimates_are_not_pooled(estimates: list[UncheckedEstimate]) -> None:
    with pytest.raises(ValueError, match=r"pool|confidence"):
        pool(estimates)


def gradings(draw: random.Random, count: int, between: float, within: float) -> list[UncheckedEstimate]:
    """Gradings of a kernel that truly takes 1, on a machine whose state moves the time by `between`."""
    found = []
    for _ in range(count):
        sigma = within * math.exp(draw.gauss(0, 0.3))
        found.append(near(draw.gauss(0, math.hypot(between, sigma)), sigma))
    return found


def test_regrading_until_lucky_gains_little_where_the_best_of_eight_gained_a_sixth() -> None:
    """As on a noisy CPU, where gradings scatter by 12 %: the best of eight lies 16 % below the truth (0.17 in logs)."""
    draw, best, pooled, early = random.Random(5), [], [], []
    for _ in range(1500):
        found = gradings(draw, 8, between=0.1, within=0.06)
        best.append(min(math.log(estimate.median) for estimate in found))
        so_far = [math.log(pool(found[:count]).median) for count in range(1, 9)]
        pooled.append(so_far[-1])
        # An author who looks after each grading, and stops once it went well; the bar is the one that gains most.
        early.append(next((log for log in so_far if log < -0.02), so_far[-1]))
    gain = {name: -sum(logs) / len(logs) for name, logs in (("best", best), ("all", pooled), ("stopped", early))}
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
