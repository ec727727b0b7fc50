"""Times the benchmark cases in sealed rounds, in the submission's own runner: on CPUs, and on GPUs when calls cannot be
replayed. Trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.device import DEVICES, Sensors
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session
from harness.judge.timing.doubts import busy_machine
from harness.judge.timing.interface import Benchmarks
from harness.judge.timing.neighbours import Neighbours
from harness.judge.timing.plan import claimed_latency, plan_for
from harness.judge.timing.roof import Roof
from harness.judge.timing.sealed.baseline import Baseline
from harness.judge.timing.sealed.benchmark import Sealing
from harness.judge.timing.sealed.overhead import Overhead, measure_overhead
from harness.judge.timing.sealed.rounds import Rounds
from harness.roofline import Calibration
from harness.verdict import BenchmarkResult, Doubt, DoubtCode, Effort, SealedBenchmark, Stage, Timing


class SealedTiming:
    """Sealed rounds of every case; `why`, on a GPU, is the reason that the calls are not replayed."""

    kind: Timing = "sealed"

    def __init__(
        self,
        effort: Effort,
        baselines: Sequence[Baseline] = (),
        calibrations: Sequence[Calibration] = (),
        why: str = "",
    ) -> None:
        self._effort, self.baselines, self._calibrations, self._why = effort, baselines, calibrations, why
        self.timed: list[BenchmarkResult] = []
        self._overhead: Overhead

    def before_the_submission(self, session: Session, benchmarks: Benchmarks) -> None:
        """Measure what a round costs, while only our own code is in the sandbox."""
        self._plan = plan_for(benchmarks.device, self._effort)
        self._overhead = measure_overhead(session, benchmarks.cases, self._plan)

    def beside_the_runner(self, session: Session, benchmarks: Benchmarks) -> None:
        """Time every case.

        Raises:
            SubmissionFault: the submission failed in one of them.
        """
        for baseline in self.baselines:
            benchmarks.enter(Stage.TIME, 0, f"baseline {baseline.name}")
            baseline.build(benchmarks)
        sensors, roof = DEVICES[benchmarks.device].sensors(), Roof.of(self._calibrations, benchmarks.device)
        for i, case in enumerate(benchmarks.cases):
            with benchmarks.of(case):
                self.timed.append(self._time(session, benchmarks, i, case, sensors, roof))

    def after_the_runner(self, benchmarks: Benchmarks) -> int:
        """Everything has been timed."""
        return 0

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        return (
            (Doubt(code=DoubtCode.NOT_REPLAYED, text=f"no launcher made the calls: {self._why}"),) if self._why else ()
        )

    def _time(
        self,
        session: Session,
        benchmarks: Benchmarks,
        i: int,
        case: GradedCase,
        sensors: Sensors,
        roof: Roof | None,
    ) -> SealedBenchmark:
        benchmarks.enter(Stage.TIME, i, case.name)
        neighbours = Neighbours(case.device, [session.cpu_ns, *(each.cpu_ns for each in self.baselines)])
        before = neighbours.read()
        limit = case.time_limit()
        latency = claimed_latency(session, case, self._plan, limit)
        paired = [ready for each in self.baselines if (ready := each.pair(case, self._plan, sensors))]
        benchmarks.enter(Stage.SEAL, i, case.name)
        rounds = Rounds(session, case, sensors, limit)
        timed = Sealing(rounds, case, self._plan, self._overhead, paired, roof).run(latency)
        return timed.model_copy(update={"doubts": (*timed.doubts, *busy_machine(neighbours.since(before)))})
