"""Times benchmark cases by replayed calls: they are recorded in the submission's runner, and replayed in launchers.

Trusted. The runner ends before any call is timed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Self

from harness.arena import Arena, give_back, settle
from harness.device import DEVICES, Sensors
from harness.errors import DeviceError, SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.timing import NoMemoryToReplay, NotReplayed
from harness.judge.timing.dealt_values import DealtValues
from harness.judge.timing.interface import NO_MEMORY, Benchmarks, described
from harness.judge.timing.plan import replay_plan_for
from harness.judge.timing.replayed.benchmark import PairedReplays, Player, ReplayMeasurement
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, RecordedCall, record, scratch_for
from harness.judge.timing.roof import Roof
from harness.submission import Submission
from harness.verdict import BenchmarkResult, Doubt, Effort, Outcome, ReplayedBenchmark, Stage, Timing
from harness.verdict.roofline import Calibration

RecordingTurn = Callable[[GradedCase], AbstractContextManager[object]]
"""Makes the context manager that is held while a case is recorded."""
_FAILURES = (SandboxError, *NO_MEMORY)  # of the harness; in a baseline they only cost the speedup


def _is_short_of_memory(error: Exception) -> bool:
    """Whether a second attempt may succeed once others have freed memory."""
    if isinstance(error, SubmissionFault):
        return error.survives and error.outcome is Outcome.MEMORY_LIMIT
    return isinstance(error, (NoMemoryToReplay, *NO_MEMORY))


def _noted(fault: SubmissionFault, recorded: RecordedCall) -> SubmissionFault:
    """A fault of a replay, with the cause that the runner named."""
    message = f"{fault.message} ({recorded.note})" if recorded.note else fault.message
    return SubmissionFault(fault.outcome, message, fault.traceback)


@contextmanager
def _replayable(case: GradedCase) -> Iterator[None]:
    """Turn errors of the harness, and a lack of memory, into `NotReplayed`: then plain calls decide."""
    try:
        yield
    except SubmissionFault as fault:
        if not _is_short_of_memory(fault):
            raise
        raise NoMemoryToReplay(f"benchmark {case.name}: {fault.message}") from None
    except NO_MEMORY as error:
        raise NoMemoryToReplay(f"benchmark {case.name}: {described(error)}") from None
    except SandboxError as error:
        raise NotReplayed(f"benchmark {case.name}: {error}") from None


class ReplayedBaseline:
    """A baseline with its own runner and launcher; `fault` says why it was given up."""

    def __init__(self, name: str, submission: Submission, session: Session, launcher: LauncherSession) -> None:
        self.name, self.submission, self._session, self._launcher = name, submission, session, launcher
        self.fault: str | None = None
        self.lacks_memory = False
        self._recorded: dict[str, RecordedCall] = {}
        self._built = self._stopped = False

    def stop(self) -> None:
        """Stop recording by ending the runner; `record`, in its own thread, then fails."""
        self._stopped = True
        self._session.close()

    def record(self, benchmarks: Benchmarks, turn: RecordingTurn) -> None:
        """Build the baseline and record its calls; then end its runner.

        If memory runs short, `lacks_memory` is set. A second call then continues with the case that failed.
        """
        self.fault, self.lacks_memory = None, False
        try:
            if not self._built:
                self._session.handshake()
                benchmarks.build(self._session, self.submission)
                self._built = True
            for case in benchmarks.cases:
                if self._stopped:
                    return
                if case.name not in self._recorded:
                    with turn(case):
                        recorded = record(self._session, case.of_baseline(self.submission))
                    if not self._stopped:
                        self._launcher.prepare(recorded)
                    self._recorded[case.name] = recorded
        except (SubmissionFault, NotReplayed, *_FAILURES) as why:
            self.fault, self.lacks_memory = described(why), _is_short_of_memory(why)
        if not self.lacks_memory:
            self._session.close()

    def recorded(self, case: GradedCase) -> list[RecordedCall]:
        """The recording of a case; empty if the baseline has failed."""
        return [self._recorded[case.name]] if self.fault is None else []

    def drop(self, case: GradedCase, fault: Exception) -> None:
        """Give the baseline up, because it failed in this case."""
        self.fault = f"{case.name}: {described(fault)}"

    def load(self, case: GradedCase, scratch: Arena | None) -> Player | None:
        """Load one case; None if the baseline has failed."""
        if self.fault is None:
            try:
                own = case.of_baseline(self.submission)
                return Player(self._launcher, self._recorded[case.name], own, scratch)
            except (SubmissionFault, *_FAILURES) as fault:
                self.drop(case, fault)
        return None

    def paired(self, case: GradedCase, player: Player, fresh: FreshInputs, stack: ExitStack) -> PairedReplays | None:
        """Warm the baseline up for one case; None if it fails.

        Args:
            fresh: the submission's inputs.
            stack: closes the baseline's own inputs, if it needs any.
        """
        try:
            if (own := case.of_baseline(self.submission)) is case:
                player.warm_up(fresh)
                return PairedReplays(self, player)
            others = FreshInputs(own)
            stack.callback(others.close)
            player.warm_up(others, checked=False)
            return PairedReplays(self, player, others)
        except (SubmissionFault, *_FAILURES) as fault:
            self.drop(case, fault)
            fresh.discard()  # the kept outputs are the baseline's
        return None


class ReplayedTiming:
    """Times replayed calls of every case; the context `alone` is held while anything is timed.

    The baselines are recorded in their own threads, from the start where the tensors are small: for attention that
    takes as long as the tests. Large ones could take the memory that a test needs, so they wait until the tests have
    passed.
    """

    kind: Timing = "replayed"
    doubts: tuple[Doubt, ...] = ()

    def __init__(
        self,
        effort: Effort,
        launcher: LauncherSession,
        baselines: Sequence[ReplayedBaseline],
        calibrations: Sequence[Calibration],
        alone: Callable[[], AbstractContextManager[None]],
        *,
        early: bool = False,
    ) -> None:
        """`early`: whether baselines may be recorded while the submission is built and tested."""
        self._early = early
        self._plan, self._launcher, self.baselines = replay_plan_for(effort), launcher, baselines
        self._calibrations, self._alone = calibrations, alone
        self.timed: list[BenchmarkResult] = []
        self._recorded: dict[str, RecordedCall] = {}
        self._dealt = DealtValues()
        self._threads = ThreadPoolExecutor(max(1, len(baselines)))
        self._recording: list[Future[None]] = []
        self._large = threading.Lock()

    def _turn(self, case: GradedCase) -> AbstractContextManager[object]:
        """Let only one large case be recorded at a time, so that its memory is not needed twice."""
        return self._large if case.layout.is_large else nullcontext()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for baseline in self.baselines:
            baseline.stop()
        self._threads.shutdown()

    def measure_before_build(self, session: Session, benchmarks: Benchmarks) -> None:
        """Begin to record the baselines, if their tensors are small. The calls need no measurement in the runner."""
        if self._early and not any(case.layout.is_large for case in benchmarks.cases):
            self._record_baselines(benchmarks)

    def _record_baselines(self, benchmarks: Benchmarks) -> None:
        self._recording = [self._threads.submit(baseline.record, benchmarks, self._turn) for baseline in self.baselines]

    def time_with_runner(self, session: Session, benchmarks: Benchmarks) -> int:
        """Record every case, and replay each recording once. Does not wait for other gradings.

        Raises:
            SubmissionFault: the call fails, or a replay of it gives wrong results or does not end.
            NotReplayed: a case cannot be recorded, or its recording cannot be loaded.
        """
        if not self._recording:
            self._record_baselines(benchmarks)
        for i, case in enumerate(benchmarks.cases):
            benchmarks.enter(Stage.RECORD, i, case.name)
            with benchmarks.of(case), _replayable(case):
                try:
                    self._record(session, case, benchmarks)
                except (SubmissionFault, *NO_MEMORY) as error:
                    if not _is_short_of_memory(error):
                        raise
                    wait(self._recording)  # try again while nothing else is recorded
                    self._record(session, case, benchmarks)
        return 0

    def time_without_runner(self, benchmarks: Benchmarks) -> int:
        """Time every case; returns how long that took in ns, without the waits for the baselines and the device.

        Raises:
            SubmissionFault: an output was wrong, or a kernel failed.
        """
        self._await_baselines(benchmarks)
        sensors, roof = DEVICES[benchmarks.device].sensors(), Roof.of(self._calibrations, benchmarks.device)
        with self._alone():
            started_ns = time.perf_counter_ns()
            for i, case in enumerate(benchmarks.cases):
                benchmarks.enter(Stage.REPLAY, i, case.name)
                with benchmarks.of(case):
                    self.timed.append(self._time(case, sensors, roof))
            return time.perf_counter_ns() - started_ns

    def _await_baselines(self, benchmarks: Benchmarks) -> None:
        """Wait until the baselines are recorded, which may take longer than the hidden tests."""
        for baseline, recorded in zip(self.baselines, self._recording, strict=True):
            if not recorded.done():
                benchmarks.enter(Stage.RECORD, len(benchmarks.cases), f"baseline {baseline.name}")
            recorded.result()
        for baseline in self.baselines:  # again, one after the other
            if baseline.lacks_memory:
                baseline.record(benchmarks, self._turn)

    def _record(self, session: Session, case: GradedCase, benchmarks: Benchmarks) -> None:
        """Record a case's call, unless that is done, and let the launcher replay it once.

        The replay is checked because a submission can see that it is being recorded.
        """
        with self._turn(case):
            if case.name not in self._recorded:
                self._recorded[case.name] = record(session, case)
                if len(self._recorded) == len(benchmarks.cases):
                    benchmarks.on_recorded(session)
                self._launcher.prepare(self._recorded[case.name])
            self._try(case, self._recorded[case.name])

    def _try(self, case: GradedCase, recorded: RecordedCall) -> None:
        with scratch_for([recorded], case.device) as scratch, ExitStack() as stack:
            try:
                player = Player(self._launcher, recorded, case, scratch)
            except SubmissionFault as fault:
                raise NotReplayed(f"benchmark {case.name}: {_noted(fault, recorded).message}") from None
            stack.callback(player.unload)  # to free memory before a baseline is recorded
            fresh = FreshInputs(case)
            stack.callback(fresh.close)
            try:
                fresh.next()
                player.play(fresh)
                fresh.keep()
                fresh.check()
            except SubmissionFault as fault:
                if recorded.note and fault.outcome is Outcome.RUNTIME_ERROR:  # it needs memory that launchers lack
                    raise NotReplayed(f"benchmark {case.name}: {_noted(fault, recorded).message}") from None
                raise _noted(fault, recorded) from None
        case.reference.release_large()

    def _time(self, case: GradedCase, sensors: Sensors, roof: Roof | None) -> ReplayedBenchmark:
        recorded = self._recorded[case.name]
        with ExitStack() as stack:
            scratch = self._scratch(case, recorded, stack)
            player = Player(self._launcher, recorded, case, scratch)
            loaded = [(baseline, other) for baseline in self.baselines if (other := baseline.load(case, scratch))]
            give_back(case.device)
            settle(case.device)
            fresh = FreshInputs(case)
            stack.callback(fresh.close)
            try:
                player.warm_up(fresh)
                pairs = (baseline.paired(case, other, fresh, stack) for baseline, other in loaded)
                baselines = [pair for pair in pairs if pair is not None]
                deal = self._dealt.dealer_for(case)
                timed = ReplayMeasurement(case, player, baselines, fresh, self._plan, sensors, roof, deal).run()
            except SubmissionFault as fault:
                raise _noted(fault, recorded) from None
            for loaded_player in (player, *(other for _, other in loaded)):
                loaded_player.unload()
            return timed

    def _scratch(self, case: GradedCase, recorded: RecordedCall, stack: ExitStack) -> Arena | None:
        """Scratch memory for the submission and its baselines; for the submission alone if memory is short."""
        others = [call for baseline in self.baselines for call in baseline.recorded(case)]
        try:
            return stack.enter_context(scratch_for([recorded, *others], case.device))
        except DeviceError as error:
            for baseline in self.baselines:
                if baseline.recorded(case):
                    baseline.drop(case, error)
            return stack.enter_context(scratch_for([recorded], case.device))
