"""Measures one benchmark case in rounds, and computes its score. Trusted."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from harness import stats
from harness.device import DEVICES
from harness.errors import HarnessError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.timing.dealt_values import DealtValues
from harness.judge.timing.doubts import doubts_of_series
from harness.judge.timing.plan import TimingPlan
from harness.judge.timing.precision import CONFIDENCE, UNSTABLE, half_width, interval
from harness.judge.timing.roof import Roof
from harness.judge.timing.rounds.baseline import PairedRounds
from harness.judge.timing.rounds.batch_size import more_calls
from harness.judge.timing.rounds.overhead import Overhead
from harness.judge.timing.rounds.rounds import Rounds
from harness.problem import ResolvedCase
from harness.verdict import Doubt, DoubtCode, RoundsBenchmark, TimedRound


class RoundsMeasurement:
    """Measures one case in one session, alternating with the baselines that are prepared for it."""

    def __init__(
        self,
        rounds: Rounds,
        case: GradedCase,
        plan: TimingPlan,
        overhead: Overhead,
        dealt: DealtValues,
        baselines: Sequence[PairedRounds] = (),
        roof: Roof | None = None,
    ) -> None:
        self._rounds, self._case, self._plan, self._overhead, self._dealt = rounds, case, plan, overhead, dealt
        self._baselines, self._roof = baselines, roof
        self._played: list[TimedRound] = []

    def run(self) -> RoundsBenchmark:
        """Measure until the intervals of the median and of the speedups are narrow, or the budget ends.

        If the rounds turn out to have too few calls, measure again with more.

        Raises:
            SubmissionFault: an output was wrong, the device cannot be as fast, or the runner failed.
            HarnessError: most rounds were no longer than their overhead.
        """
        while True:
            converged = self._measure()
            took_ns = stats.median(self._times_ns) * self._rounds.calls
            more = more_calls(self._case, self._rounds.calls, took_ns)
            if more is None:
                return self._result(converged=converged)
            self._rounds.prepare(more)
            self._rounds.play("warm-up round", checked=False)

    def _measure(self) -> bool:
        """Add blocks until the intervals are narrow at one of the looks (True), or the budget ends (False).

        While the time is not known well, the budget ends it only after the second look: if the host delayed a round,
        too few good ones may be left.
        """
        self._played.clear()
        for paired in self._baselines:
            paired.forget()
        started = time.perf_counter_ns()
        blocks, least, ended, converged = 0, self._plan.blocks_min, False, False
        deal, tried_before, tried_ns = self._dealt.dealer_for(self._case), secrets.randbelow(least), 0
        for look in stats.looks(least, self._plan.blocks_max):
            while blocks < look and not ended:
                if blocks == tried_before:
                    tried_ns = self._try_values(deal)
                    started += tried_ns
                self._block()
                blocks += 1
                over = time.perf_counter_ns() - started > self._plan.blocks_budget_ns
                known = half_width(self._estimate) <= UNSTABLE
                ended = blocks >= least and over and (blocks >= 2 * least or known)
            converged = self._narrow()
            if converged or ended:
                break
        allowed_ns, took_ns = (time.perf_counter_ns() - started) // 4, tried_ns
        # The time includes the rounds of baselines. What they took must not end a submission that has been measured.
        while not self._plan.values_once and tried_ns < allowed_ns and 2 * took_ns < self._rounds.left_ns:
            if not (took_ns := self._try_values(deal)):
                break
            tried_ns += took_ns
        return converged

    def _try_values(self, deal: Callable[[int], list[ResolvedCase]]) -> int:
        """Play an untimed round with values of tests; returns the ns that took, 0 if no values are left."""
        began = time.perf_counter_ns()
        dealt = deal(self._rounds.calls)
        if not dealt:
            return 0
        self._rounds.play_with_values(dealt)
        return time.perf_counter_ns() - began

    def _block(self) -> None:
        """Play one block: the submission, every baseline, and in reverse (ABBA)."""
        self._round()
        for paired in self._baselines:
            paired.play()
        for paired in reversed(self._baselines):
            paired.play()
        self._round()

    def _round(self) -> None:
        self._played.append(self._rounds.play(f"round {len(self._played) + 1}"))

    def _narrow(self) -> bool:
        speedups = (paired.speedup(self._times_ns, self._error) for paired in self._baselines)
        estimates = (self._estimate, *filter(None, speedups))
        return all(e.confidence >= CONFIDENCE and half_width(e) <= self._plan.narrow for e in estimates)

    @property
    def _times_ns(self) -> list[float]:
        return [played.call_ns(self._overhead.usual_ns) for played in self._played]

    @property
    def _estimate(self) -> stats.Estimate:
        """The median of the rounds; its interval includes the error of the overhead."""
        known = stats.estimate_median(self._times_ns, CONFIDENCE)
        error_ns = self._overhead.error_ns / self._rounds.calls
        return stats.Estimate(known.median, max(0.0, known.low - error_ns), known.high + error_ns, known.confidence)

    @property
    def _error(self) -> float:
        """The error of a call's time, as a share of it, that follows from the error of the overhead."""
        return self._overhead.error_ns / self._rounds.calls / max(1.0, stats.median(self._times_ns))

    def _result(self, *, converged: bool) -> RoundsBenchmark:
        estimate, times = self._estimate, self._times_ns
        if not estimate.median:
            raise HarnessError(
                f"{self._case.name}: rounds of {self._rounds.calls} calls took no longer than the overhead of a round, "
                f"{self._overhead.usual_ns:,} ns",
                "other programs may have delayed its measurement: grade again when this machine is less busy",
            )
        share = self._roof.share(self._case.resolved, self._rounds.calls, estimate.median) if self._roof else None
        return RoundsBenchmark(
            name=self._case.name,
            params=dict(self._case.resolved.params),
            rounds=tuple(self._played),
            overhead_ns=self._overhead.usual_ns,
            overhead_error_ns=self._overhead.error_ns,
            score=interval(estimate),
            weight=self._case.resolved.weight,
            stop_reason="converged" if converged else "unstable" if half_width(estimate) > UNSTABLE else "budget",
            baselines=tuple(made for paired in self._baselines if (made := paired.result(times, self._error))),
            roofline=share,
            minimum_bytes=self._case.resolved.minimum_bytes,
            minimum_flops=self._case.resolved.minimum_flops,
            doubts=tuple(self._doubts(times)),
        )

    def _doubts(self, times: Sequence[float]) -> list[Doubt]:
        read = [played.telemetry for played in self._played]
        found = list(doubts_of_series(times, {"rounds": times}, "round", read))
        cache_bytes = DEVICES[self._case.device].batch_sizes().cache_bytes
        if self._rounds.calls * self._case.layout.read_stride < 2 * cache_bytes:
            found.append((DoubtCode.WARM_CACHE, "the inputs of a round take up less than twice the L2 cache"))
        return [Doubt(code=code, text=text) for code, text in found]
