"""Times the benchmark cases in launchers: the submission's calls are recorded in its runner, which ends before any is
timed. Trusted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

import torch

from harness.errors import DeviceError
from harness.judge.fresh import FreshInputs
from harness.judge.layout import Layout
from harness.judge.replaying import Beside, Player, Replaying
from harness.judge.replays import Launcher, Recorded, record
from harness.judge.roof import Roof
from harness.judge.session import NotReplayed, Session, SubmissionFault
from harness.judge.stages import Benchmarks
from harness.judge.telemetry import Sensors
from harness.judge.time_limit import TimeLimit
from harness.judge.timing import replay_plan_for
from harness.judge.truth import Truth
from harness.problem import ResolvedCase
from harness.roofline import Calibration
from harness.submission import Submission
from harness.verdict import BenchmarkResult, Doubt, Effort, ReplayedBenchmark, Stage, Timing

_NO_MEMORY = (DeviceError, torch.OutOfMemoryError)


class ReplayedBaseline:
    """One baseline: recorded in a runner of its own, made by a launcher of its own; `fault` says why it is no more."""

    def __init__(self, submission: Submission, session: Session, launcher: Launcher) -> None:
        self.submission, self._session, self._launcher = submission, session, launcher
        self.name = submission.name.partition(".")[0]
        self.fault: str | None = None
        self._recorded: dict[str, Recorded] = {}
        self._stopped = False

    def stop(self) -> None:
        """Record no further case."""
        self._stopped = True

    def record(self, benchmarks: Benchmarks) -> None:
        """Record its calls; then its runner is needed no more."""
        problem = benchmarks.problem
        self._session.handshake()
        try:
            self._session.hand_over(benchmarks.build(self.submission), self.submission.source, problem.limits.build_s)
            for case in benchmarks.cases:
                if self._stopped:
                    return
                limit = TimeLimit(problem.limits.time_s)
                self._recorded[case.name] = record(self._session, problem, case, benchmarks.device, limit)
        except (SubmissionFault, NotReplayed, *_NO_MEMORY) as why:
            self.fault = str(why)
        self._session.close()

    def beside(self, case: ResolvedCase, fresh: FreshInputs, seconds: float) -> Beside | None:
        """Make it ready for one case; None once it has failed."""
        if self.fault is None:
            try:
                player = Player(self._launcher, self._recorded[case.name], case, seconds)
                player.warm_up(fresh)
                return Beside(self, player)
            except (SubmissionFault, *_NO_MEMORY) as fault:
                self.fault = f"{case.name}: {fault}"
                fresh.discard()  # what it wrote is not the submission's
        return None


class ReplayedTiming:
    """Replayed calls of every case. `alone` is entered for as long as anything is timed.

    The baselines are recorded in threads of their own while the submission is built and tested.
    """

    kind: Timing = "replayed"
    doubts: tuple[Doubt, ...] = ()

    def __init__(
        self,
        effort: Effort,
        launcher: Launcher,
        baselines: Sequence[ReplayedBaseline],
        calibrations: Sequence[Calibration],
        alone: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._plan, self._launcher, self.baselines = replay_plan_for(effort), launcher, baselines
        self._calibrations, self._alone = calibrations, alone
        self.timed: list[BenchmarkResult] = []
        self._recorded: dict[str, Recorded] = {}
        self._threads = ThreadPoolExecutor(max(1, len(baselines)))
        self._recording: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for baseline in self.baselines:
            baseline.stop()
        self._threads.shutdown()

    def before_the_submission(self, session: Session, benchmarks: Benchmarks) -> None:
        """Begin to record the baselines."""
        self._recording = [self._threads.submit(each.record, benchmarks) for each in self.baselines]

    def beside_the_runner(self, session: Session, benchmarks: Benchmarks) -> None:
        """Record every case, and try each recording once while there is a runner to go back to.

        Raises:
            NotReplayed: a case cannot be recorded, or a launcher makes something else of it.
        """
        for i, case in enumerate(benchmarks.cases):
            benchmarks.enter(Stage.RECORD, i, case.name)
            try:
                self._record(session, benchmarks, case)
            except SubmissionFault as fault:
                # It passed its tests: sealed rounds tell whether the submission is at fault, or the recorder.
                raise NotReplayed(f"benchmark {case.name}: {fault.message}") from None
            except _NO_MEMORY as error:
                raise NotReplayed(f"benchmark {case.name}: no memory for a recording ({error})") from None
        for baseline, recording in zip(self.baselines, self._recording, strict=True):
            benchmarks.enter(Stage.RECORD, len(benchmarks.cases), f"baseline {baseline.name}")
            recording.result()

    def after_the_runner(self, benchmarks: Benchmarks) -> int:
        """Time every case; returns how long that took, in ns, once the device was free.

        Raises:
            SubmissionFault: an output was wrong, or a kernel failed.
        """
        sensors, roof = Sensors(benchmarks.device), Roof.of(self._calibrations, benchmarks.device)
        with self._alone():
            started_ns = time.perf_counter_ns()
            for i, case in enumerate(benchmarks.cases):
                benchmarks.enter(Stage.REPLAY, i, case.name)
                with benchmarks.of(case):
                    self.timed.append(self._time(benchmarks, case, sensors, roof))
            return time.perf_counter_ns() - started_ns

    def _record(self, session: Session, benchmarks: Benchmarks, case: ResolvedCase) -> None:
        """Record a case's call, and let the launcher make it once."""
        seconds = benchmarks.problem.limits.time_s
        recorded = record(session, benchmarks.problem, case, benchmarks.device, TimeLimit(seconds))
        self._recorded[case.name] = recorded
        fresh = FreshInputs(Layout(case), benchmarks.device, Truth(benchmarks.reference, case))
        try:
            player = Player(self._launcher, recorded, case, seconds)
            fresh.next()
            player.play(fresh)
            fresh.keep()
            fresh.check()
        finally:
            fresh.close()

    def _time(
        self, benchmarks: Benchmarks, case: ResolvedCase, sensors: Sensors, roof: Roof | None
    ) -> ReplayedBenchmark:
        seconds = benchmarks.problem.limits.time_s
        fresh = FreshInputs(Layout(case), benchmarks.device, Truth(benchmarks.reference, case))
        try:
            player = Player(self._launcher, self._recorded[case.name], case, seconds)
            player.warm_up(fresh)
            found = [beside for each in self.baselines if (beside := each.beside(case, fresh, seconds))]
            return Replaying(case, player, found, fresh, self._plan, sensors, roof).run()
        finally:
            fresh.close()
