"""The seal stage of one benchmark case: how many calls a round holds, how many rounds, and what they come to. Trusted.

The size of a batch is decided by the judge's clock, never by a claim alone: a batch so short that the clock cannot hold
the claim to `WIDEST` is made larger until it can, or until memory ends. Where memory ends first, the clock counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from harness import stats, wire
from harness.judge.agreement import WIDEST, Agreement, Bounds, shortest_batch_ns
from harness.judge.layout import Layout
from harness.judge.overhead import Overhead, arena_bytes
from harness.judge.rounds import Rounds
from harness.judge.session import SubmissionFault
from harness.judge.timing import BATCH_NS, Plan, sets_for
from harness.problem import ResolvedCase
from harness.verdict import BenchmarkResult, ClaimedLatency, DeviceKind, Doubt, Interval, Outcome, SealedRound

CONFIDENCE = 0.95
_NARROW = 0.005  # of the median: half the interval's width at which no more rounds are needed


@dataclass
class _Walls:
    """What was measured with one size of batch."""

    captured: wire.Captured
    rounds: list[SealedRound] = field(default_factory=list)
    null_ns: list[int] = field(default_factory=list)
    converged: bool = False


class Sealing:
    """Measures one case in one session."""

    def __init__(self, rounds: Rounds, case: ResolvedCase, device: DeviceKind, plan: Plan, overhead: Overhead) -> None:
        self._rounds, self._case, self._device, self._plan, self._overhead = rounds, case, device, plan, overhead
        self._layout = Layout(case)

    def run(self, latency: ClaimedLatency) -> BenchmarkResult:
        """Measure until the interval of the median is narrow, or the budget ends.

        Raises:
            SubmissionFault: an output was wrong, the claims are false by the judge's clock, or the runner failed.
        """
        most = max(1, min(wire.MAX_SETS, self._plan.most_memory_bytes // self._layout.bytes_per_set))
        shortest_ns = shortest_batch_ns(self._overhead.spread_ns, self._plan.rounds_min)
        enough = round(1.25 * shortest_ns / max(latency.claimed_median_ns, 1))
        sets = min(most, max(enough, sets_for(self._layout, latency.claimed_median_ns, self._plan)))
        while True:
            walls = _Walls(self._rounds.prepare(sets))
            warm_up, _ = self._rounds.play("warm-up round", checked=False)  # cold paths in both processes
            batch_ns = warm_up.wall_ns - self._bounds(sets).high_ns
            if batch_ns >= shortest_ns or sets == most:
                self._measure(walls)
                agreement = self._agree(walls)
                if not agreement.wide or sets == most:
                    return self._result(latency, walls, agreement)
                batch_ns = agreement.sealed_ns * walls.rounds[0].calls
            sets = min(most, max(2 * sets, round(1.5 * sets * shortest_ns / max(batch_ns, 1))))

    def _bounds(self, sets: int) -> Bounds:
        return self._overhead.bounds(arena_bytes(self._layout, sets))

    def _measure(self, walls: _Walls) -> None:
        """Add rounds until the interval is narrow, or the budget ends."""
        started = time.perf_counter_ns()
        while len(walls.rounds) < self._plan.rounds_max:
            played, null_ns = self._rounds.play(f"sealed round {len(walls.rounds) + 1}")
            walls.rounds.append(played)
            walls.null_ns.append(null_ns)
            if len(walls.rounds) >= self._plan.rounds_min:
                interval = _interval([r.claimed_ns / r.calls for r in walls.rounds])
                walls.converged = interval.high_ns - interval.low_ns <= 2 * _NARROW * interval.median_ns
                if walls.converged or time.perf_counter_ns() - started > self._plan.rounds_budget_ns:
                    return

    def _agree(self, walls: _Walls) -> Agreement:
        """Hold the claims against the judge's clock.

        Raises:
            SubmissionFault: the claims lie so far below it that they are false.
        """
        agreement = Agreement.of(walls.rounds, walls.null_ns, self._bounds(walls.rounds[0].sets))
        if agreement.accuses:
            raise SubmissionFault(
                Outcome.REJECTED,
                f"claims {agreement.claimed_ns:,} ns a call, but by the judge's clock a call took "
                f"{agreement.sealed_ns:,} ns (tolerance {agreement.tolerance_ns:,} ns)",
            )
        return agreement

    def _result(self, latency: ClaimedLatency, walls: _Walls, agreement: Agreement) -> BenchmarkResult:
        return BenchmarkResult(
            name=self._case.name,
            params=dict(self._case.params),
            mode="graphs" if walls.captured.graphs else "calls",
            claimed_latency=latency,
            rounds=tuple(walls.rounds),
            null_walls_ns=tuple(walls.null_ns),
            overhead_ns=agreement.overhead_ns,
            noise_ns=agreement.noise_ns,
            sealed_ns=agreement.sealed_ns,
            claimed_ns=agreement.claimed_ns,
            tolerance_ns=agreement.tolerance_ns,
            score=_interval(agreement.believed(walls.rounds)),
            stop_reason="converged" if walls.converged else "budget",
            minimum_bytes=self._case.minimum_bytes,
            minimum_flops=self._case.minimum_flops,
            doubts=tuple(self._doubts(walls.captured, agreement, walls.rounds[0].calls)),
        )

    def _doubts(self, captured: wire.Captured, agreement: Agreement, calls: int) -> list[Doubt]:
        doubts = []
        if not captured.graphs and self._device == "cuda":
            text = f"calls were not captured ({captured.reason}); host time between them is part of the score"
            doubts.append(Doubt(code="plain_calls", text=text))
        batch_ns = agreement.sealed_ns * calls
        if batch_ns < BATCH_NS * 0.8:
            text = f"a batch lasted {batch_ns / 1e6:.2f} ms, less than {BATCH_NS / 1e6:.0f} ms"
            doubts.append(Doubt(code="short_batch", text=text))
        if calls * self._layout.input_stride < 2 * self._plan.cache_bytes:
            doubts.append(Doubt(code="warm_cache", text="the inputs of a batch fit into twice the L2 cache"))
        if agreement.claimed_ns > agreement.sealed_ns + agreement.tolerance_ns:
            doubts.append(Doubt(code="slow_claim", text="the claim is higher than the judge's clock"))
        if agreement.claimed_ns + agreement.tolerance_ns < agreement.sealed_ns:
            text = "the claim is lower than the judge's clock, which counts instead"
            doubts.append(Doubt(code="low_claim", text=text))
        if not agreement.steady:
            text = "rounds without a call became slower once the submission was there; the earlier ones count"
            doubts.append(Doubt(code="unsteady", text=text))
        if agreement.wide:
            percent = 100 * agreement.tolerance_ns / max(agreement.sealed_ns, 1)
            text = f"the clock could hold the claim to {percent:.0f} % only, not to {100 * WIDEST:.0f} %"
            text += ": the higher of the two counts"
            doubts.append(Doubt(code="wide_tolerance", text=text))
        return doubts


def _interval(per_call_ns: list[float]) -> Interval:
    found = stats.estimate_median(per_call_ns, CONFIDENCE)
    low, middle, high = (round(v) for v in (found.low, found.median, found.high))
    return Interval(median_ns=middle, low_ns=low, high_ns=high, confidence=found.confidence)
