"""The sealed rounds: the score. The clock is the judge's, the inputs are secret until it runs. Trusted.

One round: the judge fills fresh arenas that the runner has no mapping of, draws which calls run and in which order, and
has the runner assemble them. Then the clock starts, the descriptors go out, the runner maps them, launches,
synchronizes and answers; the judge takes a secret sample of the outputs and stops the clock. Afterwards it copies all
outputs into private memory, where every one must be right and the sample must not have changed. Null rounds do the same
with no call drawn. `sealed = (wall - overhead) / calls` cannot be forged: the inputs did not exist for the runner
before the clock started, and when it stopped the outputs were there (docs/decisions/0003).
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness import stats, wire
from harness.compare import describe
from harness.errors import HarnessError
from harness.judge.agreement import Agreement
from harness.judge.batch import Batch, Sample
from harness.judge.correctness import first_wrong
from harness.judge.layout import Layout
from harness.judge.overhead import Ceiling, arena_bytes, null_round
from harness.judge.session import R, Session, SubmissionFault
from harness.judge.timing import BATCH_NS, Plan, sets_for
from harness.judge.truth import Truth
from harness.problem import Problem, ResolvedCase
from harness.verdict import BenchmarkResult, ClaimedLatency, DeviceKind, Doubt, Interval, Outcome, SealedRound

CONFIDENCE = 0.95
_NARROW = 0.005  # of the median: half the interval's width at which no more rounds are needed


@dataclass
class _Walls:
    rounds: list[SealedRound] = field(default_factory=list)
    null_ns: list[int] = field(default_factory=list)


class Sealing:
    """The sealed rounds of one benchmark case in one session."""

    def __init__(
        self,
        session: Session,
        problem: Problem,
        truth: Truth,
        case: ResolvedCase,
        device: DeviceKind,
        plan: Plan,
        ceiling: Ceiling,
    ) -> None:
        self._session, self._problem, self._truth, self._case = session, problem, truth, case
        self._device, self._plan, self._ceiling = device, plan, ceiling
        self._layout = Layout(case)
        self._random = random.SystemRandom()
        self._deadline = time.monotonic() + problem.limits.time_s

    def run(self, latency: ClaimedLatency) -> BenchmarkResult:
        """Measure until the interval of the median is narrow, or the budget ends.

        Raises:
            SubmissionFault: an output was wrong, the claims are false by the judge's clock, or the runner failed.
            HarnessError: the machine became too unsteady to tell.
        """
        sets = sets_for(self._layout, latency.claimed_median_ns, self._plan)
        captured = self._capture(sets)
        walls, converged = self._measure(sets)
        return self._result(latency, captured, walls, converged)

    def _measure(self, sets: int) -> tuple[_Walls, bool]:
        """Add rounds until the interval is narrow (true) or the budget ends (false)."""
        started = time.perf_counter_ns()
        self._round(sets, 0, _Walls())  # meets cold paths in both processes
        walls = _Walls()
        while len(walls.rounds) < self._plan.rounds_max:
            self._round(sets, len(walls.rounds) + 1, walls)
            if len(walls.rounds) >= self._plan.rounds_min:
                if self._half_width(walls) <= _NARROW:
                    return walls, True
                if time.perf_counter_ns() - started > self._plan.rounds_budget_ns:
                    break
        return walls, False

    def _ask(self, command: wire.Command, expect: type[R], descriptors: Sequence[int] = ()) -> R:
        seconds = max(0.0, self._deadline - time.monotonic())
        doing = f"timing {self._case.name}"
        return self._session.ask(command, expect, seconds=seconds, doing=doing, descriptors=descriptors)

    def _capture(self, sets: int) -> wire.Captured:
        """Let the runner make its calls ready on practice memory, at the addresses that secret memory will have."""
        practice = Batch(self._layout, self._device, sets)
        try:
            bind = self._layout.bind(self._case, self._problem.parameters, sets, inputs_writable=False)
            self._ask(bind, wire.Done, practice.descriptors)
            self._ask(wire.Call(sets=(0,)), wire.Done)
            return self._ask(wire.Capture(), wire.Captured)
        finally:
            practice.close_arenas()

    def _draw(self, sets: int) -> list[int]:
        """Draw the calls of a round and their order; some are left out, and their outputs must stay untouched."""
        left_out = max(1, sets // 16) if sets > 1 else 0
        return self._random.sample(range(sets), sets - left_out)

    def _round(self, sets: int, number: int, walls: _Walls) -> None:
        """One real round by both clocks, and a null round over the same memory, which is no secret by then."""
        order = self._draw(sets)
        batch = Batch(self._layout, self._device, sets)
        sample = batch.draw_sample(order)
        try:
            self._ask(wire.Assemble(order=tuple(order)), wire.Done)
            start = time.perf_counter_ns()
            timed = self._ask(wire.Round(), wire.Timed, batch.descriptors)
            batch.take(sample)
            wall_ns = time.perf_counter_ns() - start
            batch.snapshot()
            seconds = max(0.0, self._deadline - time.monotonic())
            walls.null_ns.append(null_round(self._session, batch, seconds, f"timing {self._case.name}"))
        finally:
            batch.close_arenas()
        if number == 0:
            return  # a warm-up: nothing of it is kept
        self._check(batch, order, sample, f"sealed round {number}")
        walls.rounds.append(
            SealedRound(calls=len(order), sets=sets, seed=batch.seed, wall_ns=wall_ns, claimed_ns=timed.claimed_ns)
        )

    def _check(self, batch: Batch, order: list[int], sample: Sample, where: str) -> None:
        if not batch.holds(sample):
            raise SubmissionFault(Outcome.REJECTED, f"{where}: outputs changed after the calls were said to be done")
        if trespass := batch.trespass(order):
            raise SubmissionFault(Outcome.REJECTED, f"{where}: call {trespass.set} {trespass.text}")
        if wrong := first_wrong(batch, self._truth, order, self._problem):
            raise SubmissionFault(Outcome.WRONG_ANSWER, f"{where}: {describe(wrong)}")

    def _half_width(self, walls: _Walls) -> float:
        interval = _interval([r.claimed_ns / r.calls for r in walls.rounds])
        return (interval.high_ns - interval.low_ns) / 2 / max(interval.median_ns, 1)

    def _result(
        self, latency: ClaimedLatency, captured: wire.Captured, walls: _Walls, converged: bool
    ) -> BenchmarkResult:
        clock = self._read_clock(walls)
        return BenchmarkResult(
            name=self._case.name,
            params=dict(self._case.params),
            mode="graphs" if captured.graphs else "calls",
            claimed_latency=latency,
            rounds=tuple(walls.rounds),
            null_walls_ns=tuple(walls.null_ns),
            overhead_ns=clock.overhead_ns,
            noise_ns=clock.noise_ns,
            sealed_ns=clock.sealed_ns,
            claimed_ns=clock.claimed_ns,
            tolerance_ns=clock.tolerance_ns,
            score=_interval(clock.believed(walls.rounds)),
            stop_reason="converged" if converged else "budget",
            minimum_bytes=self._case.minimum_bytes,
            minimum_flops=self._case.minimum_flops,
            doubts=tuple(self._doubts(captured, clock, walls.rounds[0].calls)),
        )

    def _read_clock(self, walls: _Walls) -> Agreement:
        """Hold the claims against the judge's clock.

        Raises:
            SubmissionFault: the claims lie so far below it that they are false.
            HarnessError: they do, but only because the null rounds became slower than they were at first.
        """
        ceiling_ns = self._ceiling.at(arena_bytes(self._layout, walls.rounds[0].sets))
        null_ns = round(stats.median(walls.null_ns))
        clock = Agreement.of(walls.rounds, walls.null_ns, min(null_ns, ceiling_ns), self._ceiling.range_ns)
        if not clock.accuses:
            return clock
        if (
            null_ns > ceiling_ns
            and not Agreement.of(walls.rounds, walls.null_ns, null_ns, self._ceiling.range_ns).accuses
        ):
            # Either the machine has become slower since, or the submission slows the null rounds: no result either way.
            what = f"rounds without a call took {null_ns / 1e6:.2f} ms with the submission in the sandbox"
            raise HarnessError(f"{what}, and at most {ceiling_ns / 1e6:.2f} ms before", "grade it on an idle machine")
        raise SubmissionFault(
            Outcome.REJECTED,
            f"claims {clock.claimed_ns:,} ns a call, but by the judge's clock a call took "
            f"{clock.sealed_ns:,} ns (tolerance {clock.tolerance_ns:,} ns)",
        )

    def _doubts(self, captured: wire.Captured, clock: Agreement, calls: int) -> list[Doubt]:
        doubts = []
        if not captured.graphs and self._device == "cuda":
            text = f"calls were not captured ({captured.reason}); host time between them is part of the score"
            doubts.append(Doubt(code="plain_calls", text=text))
        batch_ns = clock.sealed_ns * calls
        if batch_ns < BATCH_NS * 0.8:
            text = f"a batch lasted {batch_ns / 1e6:.2f} ms, less than {BATCH_NS / 1e6:.0f} ms"
            doubts.append(Doubt(code="short_batch", text=text))
        if calls * self._layout.input_stride < 2 * self._plan.cache_bytes:
            doubts.append(Doubt(code="warm_cache", text="the inputs of a batch fit into twice the L2 cache"))
        if clock.claimed_ns > clock.sealed_ns + clock.tolerance_ns:
            doubts.append(Doubt(code="slow_claim", text="the claim is higher than the judge's clock"))
        if clock.claimed_ns + clock.tolerance_ns < clock.sealed_ns:
            doubts.append(
                Doubt(code="low_claim", text="the claim is lower than the judge's clock, which counts instead")
            )
        if clock.tolerance_ns > 0.05 * clock.sealed_ns:
            percent = 100 * clock.tolerance_ns / max(clock.sealed_ns, 1)
            text = f"claim and clock can be held against each other only to {percent:.0f} %"
            doubts.append(Doubt(code="wide_tolerance", text=text))
        return doubts


def _interval(per_call_ns: list[float]) -> Interval:
    found = stats.estimate_median(per_call_ns, CONFIDENCE)
    low, middle, high = (round(v) for v in (found.low, found.median, found.high))
    return Interval(median_ns=middle, low_ns=low, high_ns=high, confidence=found.confidence)
