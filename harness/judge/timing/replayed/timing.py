"""Times the benchmark cases in launchers: the submission's calls are recorded in its runner, which ends before any is
timed. Trusted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import Self

import torch

from harness.arena import Arena, give_back, settle
from harness.device import DEVICES, Sensors
from harness.errors import DeviceError, SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.timing import NoMemoryToReplay, NotReplayed
from harness.judge.timing.dealt_values import DealtValues
from harness.judge.timing.interface import Benchmarks
from harness.judge.timing.plan import replay_plan_for
from harness.judge.timing.replayed.benchmark import PairedReplays, Player, Replaying
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, RecordedCall, record, scratch_for
from harness.judge.timing.roof import Roof
from harness.submission import Submission
from harness.verdict import BenchmarkResult, Doubt, Effort, Outcome, ReplayedBenchmark, Stage, Timing
from harness.verdict.roofline import Calibration

Turn = Callable[[GradedCase], AbstractContextManager[object]]
"""What is held while a case is recorded."""
_NO_MEMORY = (DeviceError, torch.OutOfMemoryError)
_FAILURES = (SandboxError, *_NO_MEMORY)  # ours; in a baseline they only cost its speedup


def _described(error: Exception) -> str:
    """The text for a verdict; PyTorch's own lists every process on the GPU."""
    return "the device had too little free memory" if isinstance(error, torch.OutOfMemoryError) else str(error)


def _is_short_of_memory(error: Exception) -> bool:
    """Whether it may go well once others have given memory back."""
    if isinstance(error, SubmissionFault):
        return error.survives and error.outcome is Outcome.MEMORY_LIMIT
    return isinstance(error, _NO_MEMORY)


def _noted(fault: SubmissionFault, recorded: RecordedCall) -> SubmissionFault:
    """A fault of a replay, with what the runner said may be its cause."""
    message = f"{fault.message} ({recorded.note})" if recorded.note else fault.message
    return SubmissionFault(fault.outcome, message, fault.traceback)


@contextmanager
def _replayable(case: GradedCase) -> Iterator[None]:
    """Plain calls decide where a replay fails for a reason that is ours, or for want of memory."""
    try:
        yield
    except SubmissionFault as fault:
        if not _is_short_of_memory(fault):
            raise
        raise NoMemoryToReplay(f"benchmark {case.name}: {fault.message}") from None
    except _NO_MEMORY as error:
        raise NoMemoryToReplay(f"benchmark {case.name}: {_described(error)}") from None
    except SandboxError as error:
        raise NotReplayed(f"benchmark {case.name}: {error}") from None


class ReplayedBaseline:
    """One baseline, with its own runner for recording and its own launcher; `fault` says why it dropped out."""

    def __init__(self, name: str, submission: Submission, session: Session, launcher: LauncherSession) -> None:
        self.name, self.submission, self._session, self._launcher = name, submission, session, launcher
        self.fault: str | None = None
        self.lacks_memory = False
        self._recorded: dict[str, RecordedCall] = {}
        self._built = self._stopped = False

    def stop(self) -> None:
        """Stop the recording at any point: this ends its runner, so it fails in its own thread."""
        self._stopped = True
        self._session.close()

    def record(self, benchmarks: Benchmarks, turn: Turn) -> None:
        """Build it, and record its calls, each in its turn; after that its runner is no longer needed.

        If memory runs short, it `lacks_memory`, and can be asked again: then it goes on where it was.
        """
        self.fault, self.lacks_memory = None, False
        try:
            if not self._built:
                self._session.handshake()
                benchmarks.hand_over(self._session, self.submission)
                self._built = True
            for case in benchmarks.cases:
                if self._stopped:
                    return
                if case.name not in self._recorded:
                    with turn(case):
                        self._recorded[case.name] = record(self._session, case.of_baseline(self.submission))
        except (SubmissionFault, NotReplayed, *_FAILURES) as why:
            self.fault, self.lacks_memory = _described(why), _is_short_of_memory(why)
        if not self.lacks_memory:
            self._session.close()

    def recorded(self, case: GradedCase) -> list[RecordedCall]:
        """The recording of a case; none once it has failed."""
        return [self._recorded[case.name]] if self.fault is None else []

    def drop(self, case: GradedCase, fault: Exception) -> None:
        """Give the baseline up, since it failed in this case."""
        self.fault = f"{case.name}: {_described(fault)}"

    def load(self, case: GradedCase, scratch: Arena | None) -> Player | None:
        """Load one case; None once it has failed."""
        if self.fault is None:
            try:
                own = case.of_baseline(self.submission)
                return Player(self._launcher, self._recorded[case.name], own, scratch)
            except (SubmissionFault, *_FAILURES) as fault:
                self.drop(case, fault)
        return None

    def paired(self, case: GradedCase, player: Player, fresh: FreshInputs, stack: ExitStack) -> PairedReplays | None:
        """Warm the baseline up for one case; None if it fails. `fresh` are the submission's inputs. `stack`
        closes the baseline's own inputs, if it needs any.
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
            fresh.discard()  # those outputs are not the submission's
        return None


class ReplayedTiming:
    """Replayed calls of every case. `alone` is entered for as long as anything is timed.

    The baselines are recorded in their own threads while the submission is recorded, but not while it is built and
    tested, when the resources that they take could make it fail.
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
    ) -> None:
        self._plan, self._launcher, self.baselines = replay_plan_for(effort), launcher, baselines
        self._calibrations, self._alone = calibrations, alone
        self.timed: list[BenchmarkResult] = []
        self._recorded: dict[str, RecordedCall] = {}
        self._dealt = DealtValues()
        self._threads = ThreadPoolExecutor(max(1, len(baselines)))
        self._large = threading.Lock()

    def _turn(self, case: GradedCase) -> AbstractContextManager[object]:
        """Held while a case is recorded: of large ones, one at a time, so that their memory is not there twice."""
        return self._large if case.layout.is_large else nullcontext()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for baseline in self.baselines:
            baseline.stop()
        self._threads.shutdown()

    def before_the_submission(self, session: Session, benchmarks: Benchmarks) -> None:
        """Nothing to measure in the runner."""

    def beside_the_runner(self, session: Session, benchmarks: Benchmarks) -> int:
        """Record every case, and try each recording once; waits for no other grading.

        Raises:
            SubmissionFault: the call fails, or a replay of it gives wrong results or does not end.
            NotReplayed: a case cannot be recorded, or its recording cannot be loaded.
        """
        recording = [self._threads.submit(baseline.record, benchmarks, self._turn) for baseline in self.baselines]
        for i, case in enumerate(benchmarks.cases):
            benchmarks.enter(Stage.RECORD, i, case.name)
            with benchmarks.of(case), _replayable(case):
                try:
                    self._record(session, case, benchmarks)
                except (SubmissionFault, *_NO_MEMORY) as error:
                    if not _is_short_of_memory(error):
                        raise
                    wait(recording)  # once more, while nothing else is recorded
                    self._record(session, case, benchmarks)
        for baseline, recorded in zip(self.baselines, recording, strict=True):
            benchmarks.enter(Stage.RECORD, len(benchmarks.cases), f"baseline {baseline.name}")
            recorded.result()
        for baseline in self.baselines:  # one after the other, while nothing else is recorded
            if baseline.lacks_memory:
                baseline.record(benchmarks, self._turn)
        return 0

    def after_the_runner(self, benchmarks: Benchmarks) -> int:
        """Time every case; returns how long that took, in ns, once the device was free.

        Raises:
            SubmissionFault: an output was wrong, or a kernel failed.
        """
        sensors, roof = DEVICES[benchmarks.device].sensors(), Roof.of(self._calibrations, benchmarks.device)
        with self._alone():
            started_ns = time.perf_counter_ns()
            for i, case in enumerate(benchmarks.cases):
                benchmarks.enter(Stage.REPLAY, i, case.name)
                with benchmarks.of(case):
                    self.timed.append(self._time(case, sensors, roof))
            return time.perf_counter_ns() - started_ns

    def _record(self, session: Session, case: GradedCase, benchmarks: Benchmarks) -> None:
        """Record a case's call, unless it has been, and let the launcher make it once.

        What is right in the runner must be right here, too: a submission can see that it is recorded.
        """
        with self._turn(case):
            if case.name not in self._recorded:
                self._recorded[case.name] = record(session, case)
                if len(self._recorded) == len(benchmarks.cases):
                    benchmarks.on_recorded(session)
            self._try(case, self._recorded[case.name])

    def _try(self, case: GradedCase, recorded: RecordedCall) -> None:
        with scratch_for([recorded], case.device) as scratch, ExitStack() as stack:
            try:
                player = Player(self._launcher, recorded, case, scratch)
            except SubmissionFault as fault:
                raise NotReplayed(f"benchmark {case.name}: {_noted(fault, recorded).message}") from None
            stack.callback(player.unload)  # before a baseline is recorded
            fresh = FreshInputs(case)
            stack.callback(fresh.close)
            try:
                fresh.next()
                player.play(fresh)
                fresh.keep()
                fresh.check()
            except SubmissionFault as fault:
                if recorded.note and fault.outcome is Outcome.RUNTIME_ERROR:  # it needs memory that no launcher has
                    raise NotReplayed(f"benchmark {case.name}: {_noted(fault, recorded).message}") from None
                raise _noted(fault, recorded) from None
        case.reference.rest()

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
                deal = self._dealt.of(case)
                timed = Replaying(case, player, baselines, fresh, self._plan, sensors, roof, deal).run()
            except SubmissionFault as fault:
                raise _noted(fault, recorded) from None
            for loaded_player in (player, *(other for _, other in loaded)):
                loaded_player.unload()
            return timed

    def _scratch(self, case: GradedCase, recorded: RecordedCall, stack: ExitStack) -> Arena | None:
        """The scratch of the submission and its baselines; of the submission alone if there is no memory for more."""
        others = [call for baseline in self.baselines for call in baseline.recorded(case)]
        try:
            return stack.enter_context(scratch_for([recorded, *others], case.device))
        except DeviceError as error:
            for baseline in self.baselines:
                if baseline.recorded(case):
                    baseline.drop(case, error)
            return stack.enter_context(scratch_for([recorded], case.device))
