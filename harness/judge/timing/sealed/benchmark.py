"""The seal stage of one benchmark case: how many calls per round, how many rounds, and the resulting score. Trusted.

The size of a batch is decided by the judge's clock, never by a claim alone: a batch so short that the clock cannot
check the claim to within `WIDEST` is made larger until it can, or until memory runs out. In that case the clock counts.
Claims that the clock contradicts are measured again in a batch of another size before they are rejected.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness import stats, wire
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import SubmissionFault
from harness.judge.timing.plan import Plan, most_sets, sets_for
from harness.judge.timing.precision import CONFIDENCE, UNSTABLE, half_width, interval
from harness.judge.timing.roof import Roof
from harness.judge.timing.sealed.agreement import Agreement, Bounds, claim_ns, contradicted, shortest_batch_ns
from harness.judge.timing.sealed.baseline import Paired
from harness.judge.timing.sealed.doubts import Measured, doubts
from harness.judge.timing.sealed.overhead import Overhead, mapped_bytes
from harness.judge.timing.sealed.rounds import Rounds
from harness.verdict import ClaimedLatency, Outcome, SealedBenchmark, SealedRound

_RESIZED = 4  # the factor by which the batch that confirms a false claim is larger, or smaller


@dataclass
class _Measurements:
    """What was measured with one batch size."""

    captured: wire.Captured
    rounds: list[SealedRound] = field(default_factory=list)
    null_ns: list[int] = field(default_factory=list)
    converged: bool = False

    @property
    def plain(self) -> bool:
        return not self.captured.graphs


class Sealing:
    """Measures one case in one session, alternating with the baselines that are prepared for it."""

    def __init__(
        self,
        rounds: Rounds,
        case: GradedCase,
        plan: Plan,
        overhead: Overhead,
        baselines: Sequence[Paired] = (),
        roof: Roof | None = None,
    ) -> None:
        self._rounds, self._case, self._plan, self._overhead = rounds, case, plan, overhead
        self._baselines, self._roof, self._layout = baselines, roof, case.layout
        self._most_sets = most_sets(self._layout, plan.batch.most_memory_bytes)

    def run(self, latency: ClaimedLatency) -> SealedBenchmark:
        """Measure until the intervals of the median and of the speedups are narrow, or the budget ends.

        Raises:
            SubmissionFault: an output was wrong, the claims are false by the judge's clock, the device cannot be as
                fast, or the runner failed.
        """
        most = self._most_sets
        shortest_ns = shortest_batch_ns(self._overhead.spread_ns, self._plan.rounds_min, self._overhead.gap)
        enough = round(1.25 * shortest_ns / max(latency.claimed_median_ns, 1))
        sets = min(most, max(enough, sets_for(self._layout, latency.claimed_median_ns, self._plan)))
        while True:
            measured, warm_up = self._prepared(sets)
            batch_ns = warm_up.wall_ns - self._bounds(sets, measured).high_ns
            if batch_ns >= shortest_ns or sets == most:
                self._measure(measured)
                agreement = self._agreement(measured)
                if agreement.suspects:
                    measured = self._confirm(measured, agreement)
                    return self._result(latency, measured, self._agreement(measured))
                if not agreement.wide or sets == most:
                    return self._result(latency, measured, agreement)
                batch_ns = agreement.sealed_ns * agreement.calls
            sets = min(most, max(2 * sets, round(1.5 * sets * shortest_ns / max(batch_ns, 1))))

    def _prepared(self, sets: int) -> tuple[_Measurements, SealedRound]:
        """Prepare a batch of this size, and play a round that does not count, since it runs cold code."""
        measured = _Measurements(self._rounds.prepare(sets))
        warm_up, _ = self._rounds.play("warm-up round", checked=False)
        return measured, warm_up

    def _confirm(self, measured: _Measurements, agreement: Agreement) -> _Measurements:
        """Measure claims that are too far below the clock with another batch size; returns the larger batch's rounds.

        Raises:
            SubmissionFault: both sizes together show that the claims are false.
        """
        sets = measured.rounds[0].sets
        other = _RESIZED * sets if _RESIZED * sets <= self._most_sets else max(1, sets // _RESIZED)
        again, _ = self._prepared(other)
        self._measure(again)
        if contradicted(agreement, self._agreement(again)):
            raise SubmissionFault(
                Outcome.REJECTED,
                f"claims {agreement.claimed_ns:,} ns a call, but by the judge's clock a call took "
                f"{agreement.sealed_ns:,} ns (tolerance {agreement.tolerance_ns:,} ns), and with "
                f"{again.rounds[0].calls} instead of {agreement.calls} calls a round it was no different",
            )
        return max(measured, again, key=lambda each: each.rounds[0].sets)

    def _bounds(self, sets: int, measured: _Measurements) -> Bounds:
        return self._overhead.bounds(mapped_bytes(self._layout, sets), 0 if measured.plain else sets)

    def _measure(self, measured: _Measurements) -> None:
        """Add blocks until the intervals are narrow at one of the looks, or the budget ends.

        The budget does not end it before the second look while the time is not known well: too few rounds may be left
        if a host delayed the judge or the runner in one of them.
        """
        for paired in self._baselines:
            paired.played.clear()
        started = time.perf_counter_ns()
        blocks, least, ended = 0, self._plan.blocks_min, False
        for look in stats.looks(least, self._plan.blocks_max):
            while blocks < look and not ended:
                self._block(measured)
                blocks += 1
                over = time.perf_counter_ns() - started > self._plan.blocks_budget_ns
                ended = blocks >= least and over and (blocks >= 2 * least or self._known(measured))
            measured.converged = self._narrow(measured)
            if measured.converged or ended:
                return

    def _block(self, measured: _Measurements) -> None:
        """The submission, every baseline, and back: ABBA for each of them."""
        self._round(measured)
        for paired in self._baselines:
            paired.play()
        for paired in reversed(self._baselines):
            paired.play()
        self._round(measured)

    def _round(self, measured: _Measurements) -> None:
        played, null_ns = self._rounds.play(f"sealed round {len(measured.rounds) + 1}")
        measured.rounds.append(played)
        measured.null_ns.append(null_ns)

    def _narrow(self, measured: _Measurements) -> bool:
        agreement = self._agreement(measured)
        times, clean = self._times(measured, agreement), agreement.clean_rounds(measured.rounds)
        speedups = [estimate for paired in self._baselines if (estimate := paired.speedup(times, clean))]
        estimates = (_estimate(times, clean), *speedups)
        return all(e.confidence >= CONFIDENCE and half_width(e) <= self._plan.narrow for e in estimates)

    def _known(self, measured: _Measurements) -> bool:
        agreement = self._agreement(measured)
        clean = agreement.clean_rounds(measured.rounds)
        return half_width(_estimate(self._times(measured, agreement), clean)) <= UNSTABLE

    def _times(self, measured: _Measurements, agreement: Agreement) -> list[float]:
        """The time of each round that counts; its claim, if the batch is too short for the clock and gets replaced."""
        if agreement.wide and measured.rounds[0].sets < self._most_sets:
            return [claim_ns(r, plain=measured.plain) for r in measured.rounds]
        return agreement.credited_ns(measured.rounds)

    def _agreement(self, measured: _Measurements) -> Agreement:
        bounds = self._bounds(measured.rounds[0].sets, measured)
        return Agreement.of(measured.rounds, measured.null_ns, bounds, plain=measured.plain)

    def _result(self, latency: ClaimedLatency, measured: _Measurements, agreement: Agreement) -> SealedBenchmark:
        times, clean = agreement.credited_ns(measured.rounds), agreement.clean_rounds(measured.rounds)
        estimate = _estimate(times, clean)
        share = self._roof.share(self._case.resolved, measured.rounds[0].calls, estimate.median) if self._roof else None
        known_badly = half_width(estimate) > UNSTABLE
        evidence = Measured(
            device=self._case.device,
            latency=latency,
            rounds=measured.rounds,
            agreement=agreement,
            plain_because=measured.captured.reason if measured.plain else None,
            input_bytes=measured.rounds[0].calls * self._layout.read_stride,
            cache_bytes=self._plan.batch.cache_bytes,
        )
        return SealedBenchmark(
            name=self._case.name,
            params=dict(self._case.resolved.params),
            mode="calls" if measured.plain else "graphs",
            claimed_latency=latency,
            rounds=tuple(measured.rounds),
            null_walls_ns=tuple(measured.null_ns),
            overhead_ns=agreement.overhead_ns,
            noise_ns=agreement.noise_ns,
            sealed_ns=agreement.sealed_ns,
            claimed_ns=agreement.claimed_ns,
            tolerance_ns=agreement.tolerance_ns,
            score=interval(estimate),
            weight=self._case.resolved.weight,
            stop_reason="converged" if measured.converged else "unstable" if known_badly else "budget",
            baselines=tuple(baseline for paired in self._baselines if (baseline := paired.result(times, clean))),
            roofline=share,
            minimum_bytes=self._case.resolved.minimum_bytes,
            minimum_flops=self._case.resolved.minimum_flops,
            doubts=doubts(evidence),
        )


def _estimate(times: Sequence[float], clean: Sequence[int]) -> stats.Estimate:
    """The median of all rounds, with the interval from the clean ones."""
    middle, known = stats.median(times), stats.estimate_median([times[place] for place in clean], CONFIDENCE)
    return stats.Estimate(middle, min(known.low, middle), max(known.high, middle), known.confidence)
