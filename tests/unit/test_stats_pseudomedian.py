"""Pseudomedians: against a published example and all signs, and how often their intervals miss the truth."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats import estimate_pseudomedian, steady_ratio
from harness.stats.series import integrated_autocorrelation
from tests.draws import DRAWS, at_most

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
def test_what_has_no_interval(xs: list[float], confidence: float) -> None:
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
