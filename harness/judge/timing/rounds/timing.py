"""Times the benchmark cases in rounds of plain calls, in the submission's own runner. Trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from harness.device import DEVICES, Sensors
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session
from harness.judge.timing.dealt_values import DealtValues
from harness.judge.timing.device_lock import lock_alone, lock_at_once
from harness.judge.timing.doubts import busy_machine
from harness.judge.timing.interface import Benchmarks
from harness.judge.timing.neighbours import Neighbours
from harness.judge.timing.plan import plan_for
from harness.judge.timing.roof import Roof
from harness.judge.timing.rounds.baseline import Baseline
from harness.judge.timing.rounds.batch_size import prepare_rounds
from harness.judge.timing.rounds.benchmark import RoundsMeasurement
from harness.judge.timing.rounds.overhead import Overhead, measure_overhead
from harness.judge.timing.rounds.rounds import Rounds
from harness.verdict import BenchmarkResult, DeviceKind, Doubt, DoubtCode, Effort, RoundsBenchmark, Stage, Timing
from harness.verdict.roofline import Calibration


@dataclass(frozen=True)
class DeviceTurn:
    """How one grading gets the device for its timing. Unless `held`, its build and tests do not wait for others."""

    device: DeviceKind
    waits: Callable[[], None]
    """Called if the grading has to wait for the device."""
    fresh: Callable[[], Session]
    """Starts a sandbox without a submission."""
    held: bool
    """Whether the grading holds the device from its beginning to its end."""

    def alone(self) -> AbstractContextManager[None]:
        """Wait for the device, and hold it."""
        return nullcontext() if self.held else lock_alone(self.device, self.waits)

    def at_once(self) -> AbstractContextManager[bool]:
        """Hold the device if that is possible without waiting; yields whether it is held."""
        return nullcontext(True) if self.held else lock_at_once(self.device)


class RoundsTiming:
    """Times rounds of every case; `why`: the reason if the calls should have been replayed, else ""."""

    kind: Timing = "calls"

    def __init__(
        self,
        effort: Effort,
        turn: DeviceTurn,
        baselines: Sequence[Baseline] = (),
        calibrations: Sequence[Calibration] = (),
        why: str = "",
    ) -> None:
        self._effort, self._turn, self.baselines = effort, turn, baselines
        self._calibrations, self._why = calibrations, why
        self.timed: list[BenchmarkResult] = []
        self._dealt = DealtValues()
        self._measured: Overhead | None = None
        self._measured_again = False

    def measure_before_build(self, session: Session, benchmarks: Benchmarks) -> None:
        """Measure the overhead while only our own code is in the sandbox; later, if another grading is being timed."""
        self._plan = plan_for(benchmarks.device, self._effort)
        with self._turn.at_once() as free:
            if free:
                self._measured = measure_overhead(session, benchmarks.cases)

    def time_with_runner(self, session: Session, benchmarks: Benchmarks) -> int:
        """Time every case; returns how long the grading waited for the device, in ns.

        Raises:
            SubmissionFault: the submission failed in one of them.
        """
        for baseline in self.baselines:
            benchmarks.enter(Stage.TIME, 0, f"baseline {baseline.name}")
            baseline.build(benchmarks)
        came_ns = time.perf_counter_ns()
        with self._turn.alone():
            waited_ns = time.perf_counter_ns() - came_ns
            self._overhead = self._measured or self._measured_elsewhere(benchmarks)
            self._time_all(session, benchmarks)
        return waited_ns

    def _measured_elsewhere(self, benchmarks: Benchmarks) -> Overhead:
        with self._turn.fresh() as session:
            session.handshake()
            return measure_overhead(session, benchmarks.cases)

    def _time_all(self, session: Session, benchmarks: Benchmarks) -> None:
        sensors, roof = DEVICES[benchmarks.device].sensors(), Roof.of(self._calibrations, benchmarks.device)
        for i, case in enumerate(benchmarks.cases):
            benchmarks.enter(Stage.TIME, i, case.name)
            with benchmarks.of(case):
                self.timed.append(self._time(session, case, sensors, roof, benchmarks))

    def time_without_runner(self, benchmarks: Benchmarks) -> int:
        """Do nothing: everything has been timed."""
        return 0

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        if not self._why:
            return ()
        text = f"the calls could not be replayed ({self._why}): host work is included, and there is no rank"
        return (Doubt(code=DoubtCode.NOT_REPLAYED, text=text),)

    def _time(
        self, session: Session, case: GradedCase, sensors: Sensors, roof: Roof | None, benchmarks: Benchmarks
    ) -> RoundsBenchmark:
        neighbours = Neighbours(case.device, [session.cpu_ns, *(baseline.cpu_ns for baseline in self.baselines)])
        before = neighbours.read()
        paired = [ready for baseline in self.baselines if (ready := baseline.pair(case, self._overhead, sensors))]
        rounds = Rounds(session, case, sensors, case.time_limit())
        wall_ns = prepare_rounds(rounds, case, self._overhead)
        if wall_ns < 2 * self._overhead.usual_ns and not self._measured_again:
            # Other programs may have delayed every round from which the overhead follows: the smaller one counts.
            self._measured_again = True
            self._overhead = min(self._overhead, self._measured_elsewhere(benchmarks), key=lambda o: o.usual_ns)
            return self._time(session, case, sensors, roof, benchmarks)
        timed = RoundsMeasurement(rounds, case, self._plan, self._overhead, self._dealt, paired, roof).run()
        return timed.model_copy(update={"doubts": (*timed.doubts, *busy_machine(neighbours.since(before)))})
