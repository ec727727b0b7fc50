"""Which number counts when the runner's claim and the judge's clock differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import stats
from harness.judge.agreement import Agreement, Bounds
from harness.verdict import SealedRound

OVERHEAD_NS = 1_000_000
BOUNDS = Bounds(low_ns=900_000, usual_ns=1_010_000, noise_ns=100_000)
NULL_NS = [OVERHEAD_NS - 20_000, OVERHEAD_NS, OVERHEAD_NS + 20_000] * 4


def rounds(true_ns: int, claimed_ns: int, calls: int = 100, count: int = 7) -> list[SealedRound]:
    """Rounds of a kernel that takes `true_ns` a call and of a runner that claims `claimed_ns` a call."""
    one = SealedRound(
        calls=calls, sets=calls, seed=1, wall_ns=OVERHEAD_NS + calls * true_ns, claimed_ns=calls * claimed_ns
    )
    return [one] * count


def test_an_honest_claim_counts_to_the_nanosecond() -> None:
    honest = rounds(200_000, 199_100)
    agreement = Agreement.of(honest, NULL_NS, BOUNDS)
    assert not agreement.accuses
    assert stats.median(agreement.believed(honest)) == 199_100


@pytest.mark.parametrize("claimed_ns", [0, 1, 100_000, 150_000])
def test_a_claim_far_below_the_clock_accuses(claimed_ns: int) -> None:
    assert Agreement.of(rounds(200_000, claimed_ns), NULL_NS, BOUNDS).accuses


def test_a_claim_a_little_below_is_not_believed_and_does_not_accuse() -> None:
    low = rounds(200_000, 190_000)
    agreement = Agreement.of(low, NULL_NS, BOUNDS)
    assert not agreement.accuses
    assert stats.median(agreement.believed(low)) == 200_000 - agreement.tolerance_ns > 190_000


def test_the_tolerance_follows_from_the_noise_and_shrinks_with_the_batch() -> None:
    quiet = Agreement.of(rounds(200_000, 200_000), NULL_NS, BOUNDS)
    noisy = Agreement.of(
        rounds(200_000, 200_000), [v - 30_000 for v in NULL_NS[:6]] + [v + 30_000 for v in NULL_NS[6:]], BOUNDS
    )
    longer = Agreement.of(rounds(200_000, 200_000, calls=1000), NULL_NS, BOUNDS)
    assert longer.tolerance_ns < quiet.tolerance_ns < noisy.tolerance_ns
    assert quiet.tolerance_ns < 0.05 * quiet.sealed_ns, "a 20 ms batch is held to better than 5 %"


def test_null_rounds_that_a_submission_slows_gain_it_nothing() -> None:
    lying = rounds(200_000, 10_000)
    agreement = Agreement.of(lying, [50 * OVERHEAD_NS] * 7, BOUNDS)
    assert not agreement.steady
    assert not agreement.accuses, "a machine that became busier looks the same"
    assert stats.median(agreement.believed(lying)) >= 0.999 * 200_000


def test_a_batch_too_short_for_the_clock_gets_no_benefit_of_the_doubt() -> None:
    lying = rounds(1_000, 0)
    agreement = Agreement.of(lying, NULL_NS, BOUNDS)
    assert agreement.wide
    assert not agreement.accuses
    assert stats.median(agreement.believed(lying)) >= 1_000


def test_noise_that_a_submission_adds_widens_nothing() -> None:
    played = rounds(200_000, 200_000)
    wild = Agreement.of(played, [OVERHEAD_NS, 50 * OVERHEAD_NS] * 6, BOUNDS)
    wilder = Agreement.of(played, [OVERHEAD_NS, 500 * OVERHEAD_NS] * 6, BOUNDS)
    assert wild.tolerance_ns == wilder.tolerance_ns < 0.05 * wild.sealed_ns


@given(
    true_ns=st.integers(100, 10**9),
    claims=st.lists(st.integers(0, 10**9), min_size=6, max_size=20),
    calls=st.integers(1, 2048),
)
def test_no_claims_bring_the_score_below_the_clock_and_its_tolerance(
    true_ns: int, claims: list[int], calls: int
) -> None:
    played = [rounds(true_ns, claim, calls, 1)[0] for claim in claims]
    agreement = Agreement.of(played, NULL_NS, BOUNDS)
    assert stats.median(agreement.believed(played)) >= true_ns - agreement.tolerance_ns - 1
