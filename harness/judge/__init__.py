"""The trusted process: draws seeds, makes inputs, holds the expected outputs and the clock, compares, decides.

`check` grades for correctness, `grade` for time as well. Importing this package is cheap; the sandbox starts first and
boots while torch is imported here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.arena import free_deferred, warm_context
from harness.device import DEVICES
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.timing import NotReplayed
from harness.judge.timing.device_lock import lock_alone, lock_shared
from harness.problem import Problem
from harness.roofline import Calibration
from harness.sandbox import Provider, Role
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Effort, Stage, Verdict

if TYPE_CHECKING:
    from harness.judge.grading import Grading

__all__ = ["Progress", "check", "grade"]


def _ignore(_: Progress) -> None:
    pass


def check(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    on_progress: Callable[[Progress], None] = _ignore,
) -> Check:
    """Build a submission and run all test cases.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    warm_context(device)
    with contextlib.ExitStack() as stack:
        stack.callback(free_deferred, device)
        session = stack.enter_context(Session.start(provider, device, problem.limits))
        from harness.judge.grading import Grading

        return Grading(problem, submission, provider, device, on_progress).check(session)


def grade(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    effort: Effort = "default",
    baselines: Sequence[Submission] = (),
    calibrations: Sequence[Calibration] = (),
    on_progress: Callable[[Progress], None] = _ignore,
) -> Verdict:
    """Build a submission, run all test cases, and time all benchmark cases, in alternation with the baselines.

    Each baseline has its own sandbox, which starts now, together with the submission's. A time that beats this device's
    calibration is rejected. Waits for other gradings on the device.

    Raises:
        UsageError: the problem or the submission cannot be graded on this device.
        HarnessError: it failed for a reason that is not the submission's.
    """
    warm_context(device)
    way = _Way(problem, submission, provider, device, effort, baselines, calibrations, on_progress)
    if not DEVICES[device].captures:
        return way.sealed("")
    try:
        return way.replayed()
    except NotReplayed as error:
        why = str(error)
    return way.sealed(why)  # outside the handler, whose exception keeps device memory alive


@dataclass(frozen=True)
class _Way:
    """One grading, to be timed in one of the two ways."""

    problem: Problem
    submission: Submission
    provider: Provider
    device: DeviceKind
    effort: Effort
    baselines: Sequence[Submission]
    calibrations: Sequence[Calibration]
    on_progress: Callable[[Progress], None]

    def sealed(self, why: str) -> Verdict:
        """Grade in sealed rounds; `why` is the reason that the calls are not replayed."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock_alone(self.device, self._waits))
            stack.callback(free_deferred, self.device)
            session = stack.enter_context(self._session())
            beside = [(each, stack.enter_context(self._session())) for each in self.baselines]
            from harness.judge.timing.sealed.baseline import Baseline
            from harness.judge.timing.sealed.timing import SealedTiming

            paired = [Baseline(each, own) for each, own in beside]
            timing = SealedTiming(self.effort, paired, self.calibrations, why)
            return self._grading().grade(session, timing, self.effort)

    def replayed(self) -> Verdict:
        """Grade with replayed calls.

        Raises:
            NotReplayed: the calls cannot be replayed.
        """
        with contextlib.ExitStack() as stack:
            shared = stack.enter_context(contextlib.ExitStack())
            shared.enter_context(lock_shared(self.device, self._waits))
            stack.callback(free_deferred, self.device)
            session = stack.enter_context(self._session(records=True))
            started = stack.enter_context(self._started(len(self.baselines)))
            from harness.judge.timing.replayed.launcher import Launcher
            from harness.judge.timing.replayed.timing import ReplayedBaseline, ReplayedTiming

            beside, sessions = started()
            launcher, *others = [stack.enter_context(Launcher(each, self.device)) for each in sessions]

            @contextlib.contextmanager
            def alone() -> Iterator[None]:
                shared.close()
                with lock_alone(self.device, self._waits):
                    yield

            given = zip(self.baselines, beside, others, strict=True)
            recorded = [ReplayedBaseline(*each) for each in given]
            timing = stack.enter_context(ReplayedTiming(self.effort, launcher, recorded, self.calibrations, alone))
            return self._grading().grade(session, timing, self.effort)

    def _grading(self) -> Grading:
        from harness.judge.grading import Grading

        return Grading(self.problem, self.submission, self.provider, self.device, self.on_progress)

    @contextlib.contextmanager
    def _started(self, baselines: int) -> Iterator[Callable[[], tuple[list[Session], list[Session]]]]:
        """The baselines' runners, which record, and all launchers: started and closed in parallel.

        They start while the caller imports torch; the function that this yields waits for them.

        Raises:
            SandboxError: one did not start; raised by the yielded function.
        """
        with ThreadPoolExecutor(2 * baselines + 1) as pool:
            runners = [pool.submit(self._session, records=True) for _ in range(baselines)]
            launchers = [pool.submit(self._session, role="launcher") for _ in range(baselines + 1)]
            try:
                yield lambda: ([each.result() for each in runners], [each.result() for each in launchers])
            finally:
                up = [each.result() for each in (*runners, *launchers) if each.exception() is None]
                for _ in pool.map(Session.close, up):
                    pass

    def _session(self, *, records: bool = False, role: Role = "runner") -> Session:
        return Session.start(self.provider, self.device, self.problem.limits, records=records, role=role)

    def _waits(self) -> None:
        what = f"waiting: another grading is using this {DEVICES[self.device].name}"
        self.on_progress(Progress(Stage.BUILD, 0, 0, what))
