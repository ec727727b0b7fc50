"""Which number counts when the runner's claim and the judge's clock differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import stats
from harness.judge.timing.sealed.agreement import Agreement, Bounds, Gap, contradicted, escaped
from harness.verdict import SealedRound

OVERHEAD_NS = 1_000_000
BOUNDS = Bounds(low_ns=900_000, usual_ns=1_010_000, spread_ns=30_000, noise_ns=100_000)
NULL_NS = [OVERHEAD_NS - 20_000, OVERHEAD_NS, OVERHEAD_NS + 20_000] * 4


def rounds(
    true_ns: int, claimed_ns: int, calls: int = 100, count: int = 7, span_ns: int | None = None
) -> list[SealedRound]:
    """Rounds of a kernel that takes `true_ns` a call and of a runner that claims `claimed_ns` a call.

    By the host's clock in the runner the batch lasted `span_ns`, by default as long as it claims.
    """
    one = SealedRound(
        calls=calls,
        sets=calls,
        seed=1,
        wall_ns=OVERHEAD_NS + calls * true_ns,
        claimed_ns=calls * claimed_ns,
        claimed_span_ns=calls * claimed_ns + 12_000 if span_ns is None else span_ns,
    )
    return [one] * count


def test_an_honest_claim_counts_to_the_nanosecond() -> None:
    honest = rounds(200_000, 199_100)
    agreement = Agreement.of(honest, NULL_NS, BOUNDS, plain=False)
    assert not agreement.suspects
    assert stats.median(agreement.credited_ns(honest)) == 199_100


def test_what_rounds_take_beyond_null_rounds_and_calls_is_taken_off_and_its_error_granted() -> None:
    gap = Gap(usual_ns=2_000_000, error_ns=200_000)
    known = Bounds(low_ns=2_700_000, usual_ns=3_010_000, spread_ns=30_000, noise_ns=100_000, gap=gap)
    late = [r.model_copy(update={"wall_ns": r.wall_ns + 2_000_000}) for r in rounds(200_000, 199_100)]
    unknown, agreement = (Agreement.of(late, NULL_NS, bounds, plain=True) for bounds in (BOUNDS, known))
    assert stats.median(unknown.credited_ns(late)) > 210_000
    assert (agreement.sealed_ns, agreement.steady) == (200_000, True)
    assert stats.median(agreement.credited_ns(late)) == pytest.approx(199_220)
    assert agreement.tolerance_ns - unknown.tolerance_ns == pytest.approx(1_400 - 200, abs=1)  # of 1 % of what it took


@pytest.mark.parametrize("claimed_ns", [0, 1, 100_000, 150_000])
def test_a_claim_far_below_the_clock_is_suspect(claimed_ns: int) -> None:
    assert Agreement.of(rounds(200_000, claimed_ns), NULL_NS, BOUNDS, plain=False).suspects


def test_a_claim_a_little_below_is_not_believed_and_not_suspect() -> None:
    low = rounds(200_000, 190_000)
    agreement = Agreement.of(low, NULL_NS, BOUNDS, plain=False)
    assert not agreement.suspects
    assert stats.median(agreement.credited_ns(low)) == 200_000 - agreement.tolerance_ns > 190_000


def agreements(true_ns: int, claimed_ns: int, held_up_ns: int = 0) -> list[Agreement]:
    """Of batches of 4 and of 16 calls, where the host adds some time to each round besides its null rounds."""
    found = []
    for calls in (4, 16):
        played = [
            r.model_copy(update={"wall_ns": r.wall_ns + held_up_ns}) for r in rounds(true_ns, claimed_ns, calls=calls)
        ]
        found.append(Agreement.of(played, NULL_NS, BOUNDS, plain=True))
    return found


@pytest.mark.parametrize("larger_first", [False, True])
@pytest.mark.parametrize("claimed_ns", [0, 400_000, 1_400_000])
def test_a_claim_that_is_false_in_batches_of_two_sizes_is_contradicted(claimed_ns: int, larger_first: bool) -> None:
    first, second = agreements(2_000_000, claimed_ns)
    assert first.suspects
    assert second.suspects
    assert contradicted(*((second, first) if larger_first else (first, second)))


@pytest.mark.parametrize("larger_first", [False, True])
def test_a_host_that_adds_as_much_to_every_round_contradicts_nobody(larger_first: bool) -> None:
    """Seen once on two cores: every round of four calls outlasted an honest claim of 0.40 ms a call by 1.4 ms."""
    first, second = agreements(400_000, 388_000, held_up_ns=1_400_000)
    assert first.suspects
    assert not contradicted(*((second, first) if larger_first else (first, second)))


def test_a_judge_that_had_no_cpu_to_stop_its_clock_with_accuses_nobody_and_believes_nothing() -> None:
    """Seen once on two cores: a claim of 0.46 ms a call, a clock of 1.23 ms in four calls and not in one."""
    played = [r.model_copy(update={"held_up_ns": 3_100_000}) for r in rounds(1_234_000, 459_000, calls=4)]
    late = Agreement.of(played, NULL_NS, BOUNDS, plain=True)
    assert not late.suspects
    assert stats.median(late.credited_ns(played)) == pytest.approx(1_234_000 - late.tolerance_ns)
    lying = [r.model_copy(update={"held_up_ns": 300_000}) for r in rounds(1_234_000, 459_000, calls=4)]
    assert Agreement.of(lying, NULL_NS, BOUNDS, plain=True).suspects


def test_two_batches_of_one_size_contradict_nobody() -> None:
    first, _ = agreements(2_000_000, 0)
    assert not contradicted(first, first)


def test_the_tolerance_follows_from_the_noise_and_shrinks_with_the_batch() -> None:
    quiet = Agreement.of(rounds(200_000, 200_000), NULL_NS, BOUNDS, plain=False)
    noisy = Agreement.of(
        rounds(200_000, 200_000),
        [v - 30_000 for v in NULL_NS[:6]] + [v + 30_000 for v in NULL_NS[6:]],
        BOUNDS,
        plain=False,
    )
    longer = Agreement.of(rounds(200_000, 200_000, calls=1000), NULL_NS, BOUNDS, plain=False)
    assert longer.tolerance_ns < quiet.tolerance_ns < noisy.tolerance_ns
    assert quiet.tolerance_ns < 0.05 * quiet.sealed_ns, "a 20 ms batch is held to better than 5 %"


def test_null_rounds_that_a_submission_slows_gain_it_nothing() -> None:
    lying = rounds(200_000, 10_000)
    agreement = Agreement.of(lying, [50 * OVERHEAD_NS] * 7, BOUNDS, plain=False)
    assert not agreement.steady
    assert not agreement.suspects, "a machine that became busier looks the same"
    assert stats.median(agreement.credited_ns(lying)) >= 0.999 * 200_000


def test_a_batch_too_short_for_the_clock_gets_no_benefit_of_the_doubt() -> None:
    lying = rounds(1_000, 0)
    agreement = Agreement.of(lying, NULL_NS, BOUNDS, plain=False)
    assert agreement.wide
    assert not agreement.suspects
    assert stats.median(agreement.credited_ns(lying)) >= 1_000


def test_noise_that_a_submission_adds_widens_nothing() -> None:
    played = rounds(200_000, 200_000)
    wild = Agreement.of(played, [OVERHEAD_NS, 50 * OVERHEAD_NS] * 6, BOUNDS, plain=False)
    wilder = Agreement.of(played, [OVERHEAD_NS, 500 * OVERHEAD_NS] * 6, BOUNDS, plain=False)
    assert wild.tolerance_ns == wilder.tolerance_ns < 0.05 * wild.sealed_ns


def test_few_null_rounds_that_agree_by_chance_do_not_narrow_the_tolerance() -> None:
    played = rounds(200_000, 200_000)
    lucky = Agreement.of(played, [OVERHEAD_NS] * 7, BOUNDS, plain=False)
    assert lucky.noise_ns == BOUNDS.spread_ns


def test_work_beside_the_timed_stream_is_charged() -> None:
    beside = rounds(200_000, 150_000, span_ns=100 * 200_000)
    agreement = Agreement.of(beside, NULL_NS, BOUNDS, plain=False)
    assert all(map(escaped, beside))
    assert stats.median(agreement.credited_ns(beside)) == 200_000
    honest = rounds(200_000, 199_900)
    assert not any(map(escaped, honest)), "a launch and a wake-up are no work"


def test_plain_calls_are_timed_by_the_host() -> None:
    played = rounds(200_000, 199_000, span_ns=100 * 199_000 + 20_000)
    assert stats.median(Agreement.of(played, NULL_NS, BOUNDS, plain=True).credited_ns(played)) == 199_200
    assert stats.median(Agreement.of(played, NULL_NS, BOUNDS, plain=False).credited_ns(played)) == 199_000


@given(
    true_ns=st.integers(100, 10**9),
    claims=st.lists(st.integers(0, 10**9), min_size=6, max_size=20),
    calls=st.integers(1, 2048),
)
def test_no_claims_bring_the_score_below_the_clock_and_its_tolerance(
    true_ns: int, claims: list[int], calls: int
) -> None:
    played = [rounds(true_ns, claim, calls, 1)[0] for claim in claims]
    agreement = Agreement.of(played, NULL_NS, BOUNDS, plain=False)
    assert stats.median(agreement.credited_ns(played)) >= true_ns - agreement.tolerance_ns - 1
