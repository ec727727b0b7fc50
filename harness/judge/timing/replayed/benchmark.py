"""Measures one benchmark case by replayed calls, and computes its score. Trusted.

As in rounds of plain calls, calls of the submission alternate with those of the baselines (ABBA) until the intervals of
the time and of the speedups are narrow, or the budget ends. The time of a block is the mean of the submission's two
calls, and the score is the pseudomedian of the blocks. Every call has its own inputs, and every output of the
submission is checked.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from harness import stats
from harness.arena import Arena
from harness.device import Sensors
from harness.errors import SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import SubmissionFault
from harness.judge.timing.dealt_values import fault_with_values
from harness.judge.timing.doubts import doubts_of_series
from harness.judge.timing.interface import TimedBaseline
from harness.judge.timing.plan import TimingPlan
from harness.judge.timing.precision import CONFIDENCE, RESOLUTION, UNSTABLE, half_width, interval, ratio
from harness.judge.timing.replayed.clocks import Clocks
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.kernels import launched
from harness.judge.timing.replayed.launcher import LauncherSession, RecordedCall
from harness.judge.timing.roof import Roof
from harness.problem import ResolvedCase
from harness.recording.schema import Empty
from harness.verdict import Doubt, DoubtCode, PairedBaseline, ReplayedBenchmark, ReplayedCalls, Telemetry
from harness.wire import replies

_WARM_UPS = 3
_BLOCKS_PER_PLACE = 5  # so that the calls before the first look use two places in memory
_VALUES_AT_ONCE = 4
# The time that trying other values may take at least; more if that is a quarter of the time for checking timed calls.
_VALUES_NS = 200_000_000


def block_times(calls_ns: Sequence[float]) -> list[float]:
    """The mean of the two calls of each block."""
    return [(first + second) / 2 for first, second in zip(calls_ns[::2], calls_ns[1::2], strict=True)]


class Player:
    """A launcher that has loaded the recording of a case, and the calls that it has made."""

    def __init__(
        self, launcher: LauncherSession, recorded: RecordedCall, case: GradedCase, scratch: Arena | None
    ) -> None:
        """Load the recording; `scratch` is from `scratch_for`."""
        self._launcher, self._limit = launcher, case.time_limit()
        self.recording, self.host_ns = recorded.packed.recording, recorded.host_ns
        self.loaded = launcher.load(recorded, case, scratch, self._limit)
        self.nodes = sum(not isinstance(node, Empty) for node in self.recording.nodes)
        self.made: list[replies.Replayed] = []

    def warm_up(self, fresh: FreshInputs, *, checked: bool = True) -> None:
        """Make calls that are not timed; `checked`: check their outputs."""
        for _ in range(_WARM_UPS):
            fresh.next()
            self.settle(fresh)
            if checked:
                fresh.keep()
        fresh.check()

    def settle(self, fresh: FreshInputs) -> None:
        """Make one untimed call on the content of the arenas: the first call in newly mapped memory is slower."""
        self._launcher.play(fresh, self._limit)

    def play(self, fresh: FreshInputs) -> None:
        """Make one timed call on the content of the arenas."""
        self.made.append(self._launcher.play(fresh, self._limit))

    def unload(self) -> None:
        """Release the memory of the calls. No more calls can be made."""
        self._launcher.unload(self._limit)

    @property
    def clocks(self) -> Clocks:
        return Clocks.of(self.made, self.loaded, self.nodes)

    @property
    def calls(self) -> ReplayedCalls:
        """The timed calls in the verdict's form."""
        return ReplayedCalls(
            device_ns=tuple(call.device_ns for call in self.made),
            event_ns=tuple(call.event_ns for call in self.made),
            span_ns=tuple(call.span_ns for call in self.made),
        )


class PairedReplays:
    """The replayed calls of a baseline in one case.

    If the baseline fails, the submission has no speedup over it, and nothing else changes. The baseline gets the
    submission's inputs, or inputs of its `own` if it computes something else.
    """

    def __init__(self, baseline: TimedBaseline, player: Player, own: FreshInputs | None = None) -> None:
        self._baseline, self._player, self._own = baseline, player, own

    def settle(self, fresh: FreshInputs) -> None:
        """Make one untimed call, as `Player.settle`."""
        self._make(self._player.settle, fresh)

    def play(self, fresh: FreshInputs) -> None:
        """Make one timed call. Its outputs are not checked: those of the warm-up calls were."""
        self._make(self._player.play, fresh)

    def _make(self, call: Callable[[FreshInputs], None], fresh: FreshInputs) -> None:
        if self._baseline.fault is None:
            try:
                if self._own is None:
                    fresh.again()
                else:
                    self._own.next()
                call(self._own or fresh)
            except (SubmissionFault, SandboxError) as fault:
                self._baseline.fault = str(fault)

    def speedup(self, times_ns: Sequence[float]) -> stats.Estimate | None:
        """The speedup of a submission whose calls took this long, paired by index with the baseline's calls.

        None if the baseline failed.
        """
        if len(self._player.made) != len(times_ns):
            return None
        baseline_ns, submission_ns = block_times(self._player.clocks.counted_ns), block_times(times_ns)
        if min(*baseline_ns, *submission_ns) <= 0:
            return None
        ratios = [baseline / submission for baseline, submission in zip(baseline_ns, submission_ns, strict=True)]
        return stats.steady_ratio(ratios, CONFIDENCE, RESOLUTION)

    def result(self, times_ns: Sequence[float]) -> PairedBaseline | None:
        """The baseline's part of the verdict; None if it failed."""
        estimate = self.speedup(times_ns)
        if estimate is None:
            return None
        return PairedBaseline(
            name=self._baseline.name,
            sha256=self._baseline.submission.sha256,
            calls=self._player.calls,
            time_ns=round(stats.median(self._player.clocks.counted_ns)),
            speedup=ratio(estimate),
            peak_bytes=self._player.recording.peak_bytes,
        )


class ReplayMeasurement:
    """Measures one case by replayed calls that alternate with those of the baselines."""

    def __init__(
        self,
        case: GradedCase,
        player: Player,
        baselines: Sequence[PairedReplays],
        fresh: FreshInputs,
        plan: TimingPlan,
        sensors: Sensors,
        roof: Roof | None,
        deal: Callable[[int], list[ResolvedCase]],
    ) -> None:
        """`deal` is from `DealtValues.dealer_for`."""
        self._case, self._player, self._baselines, self._deal = case, player, baselines, deal
        self._fresh, self._plan, self._sensors, self._roof = fresh, plan, sensors, roof
        self._telemetry: list[Telemetry | None] = []
        self._tried_ns = 0

    def run(self) -> ReplayedBenchmark:
        """Measure until the intervals of the median and of the speedups are narrow, or the budget ends.

        Raises:
            SubmissionFault: an output was wrong, the device cannot be as fast, or the launcher failed.
        """
        started = time.perf_counter_ns()
        converged, blocks, tried_before = False, 0, secrets.randbelow(self._plan.blocks_min)
        for look in stats.looks(self._plan.blocks_min, self._plan.blocks_max):
            while blocks < look and (
                blocks < self._plan.blocks_min or time.perf_counter_ns() - started < self._plan.blocks_budget_ns
            ):
                if blocks == tried_before:
                    started += self._try_values(1 if self._plan.values_once else _VALUES_AT_ONCE)
                if blocks % _BLOCKS_PER_PLACE == 0 and self._fresh.move():
                    self._settle()
                self._block()
                blocks += 1
            converged = self._narrow()
            if converged or blocks < look:
                break
        self._fresh.check()
        self._try_more_values()
        return self._result(converged=converged)

    def _try_more_values(self) -> None:
        """Try the remaining values of tests, as long as that takes little time compared with the rest."""
        allowed_ns = max(_VALUES_NS, self._fresh.checking_ns // 4)
        while not self._plan.values_once and self._tried_ns < allowed_ns and self._try_values(_VALUES_AT_ONCE):
            pass

    def _try_values(self, most: int) -> int:
        """Make untimed calls on values of tests, and check them; returns the ns that took, 0 if no values are left."""
        dealt = self._deal(min(most, self._fresh.group))
        if not dealt:
            return 0
        began = time.perf_counter_ns()
        for values in self._fresh.with_values(dealt):
            try:
                self._player.settle(self._fresh)
            except SubmissionFault as fault:
                raise fault_with_values([values], fault.outcome, fault.message) from None
            self._fresh.keep()
        took_ns = time.perf_counter_ns() - began
        self._tried_ns += took_ns
        return took_ns

    def _settle(self) -> None:
        self._fresh.next()
        self._player.settle(self._fresh)
        self._fresh.keep()
        for baseline in self._baselines:
            baseline.settle(self._fresh)

    def _block(self) -> None:
        """Make the calls of one block: the submission, every baseline, and in reverse."""
        self._call()
        for baseline in (*self._baselines, *reversed(self._baselines)):
            baseline.play(self._fresh)
        self._call()
        self._telemetry.append(self._sensors.read())

    def _call(self) -> None:
        self._fresh.next()
        self._player.play(self._fresh)
        self._fresh.keep()

    def _narrow(self) -> bool:
        times = self._player.clocks.counted_ns
        speedups = [estimate for baseline in self._baselines if (estimate := baseline.speedup(times))]
        estimates = (stats.estimate_pseudomedian(block_times(times), CONFIDENCE), *speedups)
        return all(e.confidence >= CONFIDENCE and half_width(e) <= self._plan.narrow for e in estimates)

    def _result(self, *, converged: bool) -> ReplayedBenchmark:
        player, clocks = self._player, self._player.clocks
        times = clocks.counted_ns
        estimate = stats.estimate_pseudomedian(block_times(times), CONFIDENCE)
        # The inputs of a call are never in the cache, so it counts like one call of a batch.
        share = self._roof.share(self._case.resolved, 1, estimate.median) if self._roof else None
        return ReplayedBenchmark(
            name=self._case.name,
            params=dict(self._case.resolved.params),
            calls=player.calls,
            seeds=tuple(self._fresh.seeds),
            group=self._fresh.group,
            kernels=launched(player.recording, player.loaded, player.made),
            event_extra_ns=player.loaded.event_extra_ns,
            span_extra_ns=player.loaded.span_extra_ns,
            telemetry=tuple(self._telemetry),
            score=interval(estimate),
            weight=self._case.resolved.weight,
            stop_reason="converged" if converged else "unstable" if half_width(estimate) > UNSTABLE else "budget",
            baselines=tuple(paired for baseline in self._baselines if (paired := baseline.result(times))),
            roofline=share,
            minimum_bytes=self._case.resolved.minimum_bytes,
            minimum_flops=self._case.resolved.minimum_flops,
            scratch_bytes=player.recording.scratch_bytes,
            peak_bytes=player.recording.peak_bytes,
            host_ns=player.host_ns or None,
            doubts=_doubts(block_times(times), clocks, self._telemetry),
        )


def _doubts(times: Sequence[float], clocks: Clocks, readings: Sequence[Telemetry | None]) -> tuple[Doubt, ...]:
    """The doubts about the time. `readings` are those of the sensors after each block."""
    doubts = [(DoubtCode.CLOCKS_DISAGREE, clocks.doubt)] if clocks.doubt else []
    doubts += doubts_of_series(times, {"calls": times}, "block", readings)
    return tuple(Doubt(code=code, text=text) for code, text in doubts)
