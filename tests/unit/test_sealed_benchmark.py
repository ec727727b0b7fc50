"""How many rounds the seal stage makes, and what they come to, on a runner and a clock that do as they are told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import wire
from harness.device import BatchSizes
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import SubmissionFault
from harness.judge.timing.plan import Plan
from harness.judge.timing.sealed import benchmark as sealing
from harness.judge.timing.sealed.benchmark import Sealing
from harness.judge.timing.sealed.overhead import NullCost, Overhead
from harness.problem import load
from harness.problem.reference import Reference
from harness.verdict import ClaimedLatency, Outcome, SealedBenchmark, SealedRound

PROBLEM = load(Path(__file__).parents[2] / "problems" / "vector_add")
NULL_NS, CALL_NS, BLOCK_NS = 600_000, 100_000, 500_000_000


class Steady:
    """Rounds of a kernel that always takes as long; the host is late in those that `late_ns` names, from 1 on.

    Of `every` round: by how much each is slower than the one before (`slower_ns`), what the host adds (`held_up_ns`),
    and how much a call takes that it does not claim (`unclaimed_ns`).
    """

    def __init__(self, late_ns: dict[int, int] | None = None, **every: int) -> None:
        self.late_ns, self.every = late_ns or {}, every
        self.sets = self.played = self.now_ns = 0
        self.sizes: list[int] = []

    def prepare(self, sets: int) -> wire.Captured:
        self.sizes.append(sets)
        self.sets, self.played = sets, 0
        return wire.Captured(graphs=1, reason="")

    def play(self, where: str, *, checked: bool = True) -> tuple[SealedRound, int]:
        if where != "warm-up round":
            self.played += 1
        self.now_ns += BLOCK_NS // 2
        calls = self.sets - 1
        claimed_ns = calls * CALL_NS + self.played * self.every.get("slower_ns", 0)
        return SealedRound(
            calls=calls,
            sets=self.sets,
            seed=1,
            wall_ns=NULL_NS
            + claimed_ns
            + self.late_ns.get(self.played, 0)
            + self.every.get("held_up_ns", 0)
            + calls * self.every.get("unclaimed_ns", 0),
            claimed_ns=claimed_ns,
            claimed_span_ns=claimed_ns + 12_000,
        ), NULL_NS


def sealed(rounds: Any, monkeypatch: pytest.MonkeyPatch) -> SealedBenchmark:
    monkeypatch.setattr(sealing, "time", SimpleNamespace(perf_counter_ns=lambda: rounds.now_ns))
    case = PROBLEM.benchmarks[-1].model_copy(update={"params": {"n": 1 << 17}})
    null = NullCost(1 << 20, NULL_NS - 20_000, NULL_NS)
    overhead = Overhead(null, NullCost(1 << 33, null.low_ns, null.usual_ns), spread_ns=20_000, range_ns=30_000)
    plan = Plan(200, 300_000_000, 3, 24, 3 * BLOCK_NS, 0.005, BatchSizes(12 << 30, 45 << 30, 50 << 20))
    latency = ClaimedLatency(
        hold="memory", claimed_p10_ns=CALL_NS, claimed_median_ns=CALL_NS, claimed_p90_ns=CALL_NS,
        claimed_samples_ns=(CALL_NS,), claimed_span_ns=CALL_NS,
    )  # fmt: skip
    graded = GradedCase(PROBLEM, Reference.load(PROBLEM), "cuda", PROBLEM.resolve(case))
    return Sealing(rounds, graded, plan, overhead).run(latency)


def test_a_quiet_case_gets_six_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sealed(Steady(), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (6, "converged")
    assert result.score.low_ns == result.score.high_ns == CALL_NS
    assert not result.doubts


@pytest.mark.parametrize("when", [1, 4, 6])
def test_a_late_host_costs_two_more_rounds_and_not_the_interval(when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    result = sealed(Steady({when: 30_000_000}), monkeypatch)
    assert len(result.rounds) == 8, "of six rounds no interval can do without one"
    assert result.score.low_ns == result.score.high_ns == CALL_NS
    assert result.score.confidence > 0.95
    assert result.stop_reason == "converged"
    [doubt] = result.doubts
    assert doubt.code == "late_clock"
    assert "in 1 of 8 rounds" in doubt.text
    assert "30.0 ms" in doubt.text


def test_where_many_rounds_are_late_all_of_them_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sealed(Steady(dict.fromkeys(range(2, 100, 3), 30_000_000)), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (12, "unstable")
    assert result.score.median_ns == CALL_NS < result.score.high_ns, "the rounds that are late count, by the clock"


def test_a_round_that_tells_nothing_still_counts_in_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever claims too little in a quarter of the rounds gets the clock there, and the median of all rounds."""
    result = sealed(Steady({1: 30_000_000, 2: 30_000_000}, slower_ns=50_000), monkeypatch)
    claims = [r.claimed_ns / r.calls for r in result.rounds]
    assert len(claims) == 8
    assert result.score.median_ns == round((claims[5] + claims[6]) / 2), "the first two count as the slowest"
    assert (result.score.low_ns, result.score.high_ns) == (round(claims[2]), round(claims[7]))


def test_a_kernel_that_varies_gets_twelve_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sealed(Steady(slower_ns=2_000_000), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (12, "unstable")


def test_the_budget_ends_it_where_the_time_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sealed(Steady(slower_ns=50_000), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (8, "budget")


def test_a_false_claim_is_rejected_once_a_batch_of_another_size_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Steady(unclaimed_ns=60_000)
    with pytest.raises(SubmissionFault, match=r"claims 100,000 ns a call, .* took 160,000 ns") as caught:
        sealed(rounds, monkeypatch)
    assert caught.value.outcome is Outcome.REJECTED
    first, second = rounds.sizes
    assert second == 4 * first


def test_a_host_that_adds_the_same_to_every_round_costs_a_larger_batch_and_accuses_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = Steady(held_up_ns=20_000_000)
    result = sealed(rounds, monkeypatch)
    first, second = rounds.sizes
    assert second == 4 * first
    assert result.rounds[0].sets == second
    assert "low_claim" in [doubt.code for doubt in result.doubts]
