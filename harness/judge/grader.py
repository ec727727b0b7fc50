"""Runs one grading: starts its sandboxes, chooses how calls are timed, and decides who else may use the device.

Trusted. The sandboxes start before torch is imported, and boot during the import.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from harness.arena import free_deferred, warm_context
from harness.device import DEVICES
from harness.errors import HarnessError
from harness.judge.compile_ahead import helper_count, known_cases, requests
from harness.judge.device_memory import lacked_memory
from harness.judge.session import BuildRequest, Builds, Session, Sessions
from harness.judge.session.builds import AheadCommand, CompilerTurn
from harness.judge.setup import Progress, Setup
from harness.judge.timing import NoMemoryToReplay, NotReplayed
from harness.judge.timing.device_lock import lock_alone, lock_shared, waiting_before
from harness.judge.torch_import import import_torch
from harness.submission import Submission
from harness.verdict import Check, Stage, Verdict

if TYPE_CHECKING:
    from harness.judge.grading import Grading


class Grader:
    """Grades one submission once, by `check` or by `grade`. Close it afterwards."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._device = DEVICES[setup.device]
        self._sessions: Sessions | None = None
        self._builds = Builds(setup.provider, setup.device, setup.problem.limits, setup.kept)
        self._has_built = False
        self._ahead: Sessions | None = None
        self._grading_run: Grading | None = None
        self._lock, self._closed = threading.RLock(), False
        self._is_alone = False
        warm_context(setup.device)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(self, turn: CompilerTurn = contextlib.nullcontext, *, triton: bool = False) -> None:
        """Compile the submission and the baselines in sandboxes without the device. Idempotent.

        If this is not called, `check` and `grade` do it. It does not wait for the device, so a process that grades many
        submissions can call it before a grading slot is free.

        Args:
            turn: a context manager that is entered for each build, with the number of compilers that will run.
            triton: also compile the submission's Triton kernels, which its runner would otherwise compile during the
                tests. That takes one more sandbox, but shortens the tests, during which no other grading can be timed.

        Raises:
            UsageError: the problem or the submission cannot be graded.
        """
        setup, compiled = self._setup, self._compiled()
        ahead: list[AheadCommand] = []
        if triton and not self._has_built and setup.submission not in compiled and helper_count(setup):
            ahead = [command for case in known_cases(setup) for command in requests(setup, case)]
            compiled = [setup.submission, *compiled] if self._builds.are_isolated else compiled
        self._has_built = True
        for submission in compiled:
            self._refuse_if_closed()
            setup.on_progress(Progress(Stage.BUILD, 0, 1, submission.name))
            problem = setup.problem if submission is setup.submission else setup.problem.of_baseline(submission.stem)
            case = problem.tests[0].drawn(secrets.SystemRandom())  # its sizes do not matter
            request = BuildRequest.of(problem, submission, [problem.resolve(case)], setup.device)
            self._builds.build(request, turn, ahead if submission is setup.submission else ())

    def _compiled(self) -> list[Submission]:
        """The submissions that still have to be compiled."""
        setup = self._setup
        unbuilt = [] if self._has_built else [setup.submission, *setup.baselines]
        return list(filter(self._builds.can_prebuild, unbuilt))

    def _build_while_starting(self, *, replayed: bool) -> None:
        """Build while the runner starts and torch is imported, before this grading takes the device."""
        if self._compiled():
            self._ensure_sessions(replayed=replayed).runner()
            threading.Thread(target=import_torch).start()  # a failed import is reported where torch is used
            self.build()

    def start(self) -> None:
        """Start the sandboxes of `grade` now, so that they are ready when it is called.

        On a CPU this does nothing: starting sandboxes would disturb calls that are being timed.
        """
        if not self._device.on_host:
            self._ensure_sessions(replayed=self._replays).start_all()

    def adopt(self, ahead: Sessions) -> None:
        """Use these sandboxes, which were started ahead of time, if they fit the grading. They end with it."""
        self._ahead = ahead

    def wait(self) -> None:
        """Wait until the sandboxes of `start` are up and have imported torch.

        Raises:
            SandboxError: one did not start.
        """
        if self._sessions is not None:
            self._sessions.wait()

    def close(self) -> None:
        """End the sandboxes and release the device's memory. Idempotent; when this returns, the sandboxes are gone.

        Another thread may call this. A grading that is still running then fails, and starts no new sandbox.
        """
        self._closed = True
        self._builds.close()
        self._end_sandboxes()

    def _end_sandboxes(self) -> None:
        with self._lock:  # a second caller waits until the first is done
            held, self._sessions, self._ahead = (self._sessions, self._ahead), None, None
            for sessions in held:
                if sessions is not None:
                    sessions.close()
            if self._grading_run is not None:
                self._grading_run.close()
        if not self._setup.keeps_memory:
            free_deferred(self._setup.device)

    def check(self) -> Check:
        """Build the submission and run all test cases.

        Raises:
            UsageError, HarnessError: as for `harness.judge.check`.
        """
        self._build_while_starting(replayed=False)
        session = self._runner(replayed=False)
        return self._grading().check(session)

    def grade(self, *, alone: bool = False) -> Verdict:
        """Build the submission, run all test cases, and time all benchmark cases.

        `alone`: let no other grading use the device at the same time. By default others may use it until this one is
        timed.

        Raises:
            UsageError, HarnessError: as for `harness.judge.grade`.
        """
        self._is_alone = alone
        if not self._replays:
            return self._in_rounds("", alone=alone)
        try:
            verdict = self._replayed(alone=alone)
            if not (self._setup.baselines and self.lacked_memory(verdict)):
                return verdict
            why, again = "", True  # a baseline may have had the memory
        except NoMemoryToReplay as error:
            why, again = str(error), not alone
        except NotReplayed as error:
            why, again = str(error), False
        # Not inside the handlers: their exceptions keep device memory alive.
        if again:
            self._is_alone = True
            try:
                return self._replayed(alone=True)
            except NotReplayed as error:
                why = str(error)
        return self._in_rounds(why, alone=True)

    @property
    def _replays(self) -> bool:
        return self._device.captures and self._setup.problem.timing == "replayed"

    def _in_rounds(self, why: str, *, alone: bool = True) -> Verdict:
        """Grade in rounds of plain calls.

        On a GPU no other grading uses the device at the same time: a runner that waited to be timed would keep its
        memory.

        Args:
            why: the reason if the calls should have been replayed, else "".
        """
        setup, held = self._setup, alone or not self._device.on_host
        self._build_while_starting(replayed=False)
        with lock_alone(setup.device, self._report_waiting) if held else contextlib.nullcontext(), self._ending():
            session = self._runner(replayed=False)
            from harness.judge.timing.rounds.baseline import Baseline
            from harness.judge.timing.rounds.timing import DeviceTurn, RoundsTiming

            runners, _ = self._ensure_sessions(replayed=False).others()
            paired = list(map(Baseline, self._baseline_labels, setup.baselines, runners))
            turn = DeviceTurn(setup.device, self._report_waiting_for_timing, self._new_session, held)
            timing = RoundsTiming(setup.effort, turn, paired, setup.calibrations, why)
            return self._grading().grade(session, timing)

    def _replayed(self, *, alone: bool) -> Verdict:
        """Grade with replayed calls.

        Raises:
            NotReplayed: the calls cannot be replayed.
        """
        setup = self._setup
        self._build_while_starting(replayed=True)
        with contextlib.ExitStack() as stack:
            shared = stack.enter_context(contextlib.ExitStack())
            shared.enter_context((lock_alone if alone else lock_shared)(setup.device, self._report_waiting))
            stack.enter_context(self._ending())
            runner = self._runner(replayed=True)
            from harness.judge.timing.replayed.launcher import LauncherSession
            from harness.judge.timing.replayed.timing import ReplayedBaseline, ReplayedTiming

            runners, sessions = self._ensure_sessions(replayed=True).others()
            launcher, *others = [LauncherSession(session, setup.device, self._new_launcher) for session in sessions]

            @contextlib.contextmanager
            def while_timed() -> Iterator[None]:
                if alone:
                    yield
                    return
                shared.close()
                with lock_alone(setup.device, self._report_waiting):
                    yield

            recorded = list(map(ReplayedBaseline, self._baseline_labels, setup.baselines, runners, others))
            # A foreign reference has room for one case at a time.
            early = not alone and setup.problem.foreign is None
            timing = ReplayedTiming(setup.effort, launcher, recorded, setup.calibrations, while_timed, early=early)
            return self._grading().grade(runner, stack.enter_context(timing))

    @property
    def sandboxes(self) -> int:
        """How many sandboxes `grade` has at the same time. On a GPU each has a CUDA context."""
        runners = 1 + len(self._setup.baselines)
        return 2 * runners if self._replays else runners

    def lacked_memory(self, verdict: Check) -> bool:
        """Whether the submission failed for a lack of the device's memory, which others may have used."""
        short = self._grading_run is not None and self._grading_run.memory_was_short
        return not self._is_alone and (short or lacked_memory(verdict))

    @property
    def _baseline_labels(self) -> list[str]:
        return [self._setup.problem.baseline_label(kernel.stem) for kernel in self._setup.baselines]

    def _grading(self) -> Grading:
        from harness.judge.grading import Grading

        self._grading_run = Grading(self._setup, self._builds)
        return self._grading_run

    def _ensure_sessions(self, *, replayed: bool) -> Sessions:
        """The sandboxes of this grading, which are created or adopted now if there are none.

        Raises:
            HarnessError: the grading was closed.
        """
        with self._lock:
            self._refuse_if_closed()
            if self._sessions is None:
                limits, baselines = self._setup.problem.limits, len(self._setup.baselines)
                triton = helper_count(self._setup) > 0
                self._sessions = Sessions(
                    self._setup.provider,
                    self._setup.device,
                    limits,
                    baselines=baselines,
                    replayed=replayed,
                    triton=triton,
                )
                if self._ahead is not None and self._ahead.matches(self._sessions):
                    self._sessions, self._ahead = self._ahead, None
                    self._sessions.wake()
            return self._sessions

    def _runner(self, *, replayed: bool) -> Session:
        """The submission's runner, once its sandbox is launched. The sandbox boots while torch is imported here.

        The import comes after the launch, as it holds the GIL and the loader's lock: a launch beside it takes 1.2 s
        instead of 0.4.

        Raises:
            HarnessError: it did not start, or the grading was closed.
        """
        runner = self._ensure_sessions(replayed=replayed).runner()
        import_torch()
        return runner

    def _new_session(self) -> Session:
        """Start one more sandbox.

        Raises:
            HarnessError: the grading was closed.
        """
        self._refuse_if_closed()
        return Session.start(self._setup.provider, self._setup.device, self._setup.problem.limits)

    def _new_launcher(self) -> Session:
        """Start a launcher with several hardware queues.

        Raises:
            HarnessError: it did not start, or the grading was closed.
        """
        with self._lock:
            if self._sessions is None:
                raise HarnessError("the grading was closed")
            started = self._sessions.start_launcher()
        return started.result()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise HarnessError("the grading was closed")

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """End the sandboxes on exit. Another way of timing starts new ones."""
        try:
            yield
        finally:
            self._end_sandboxes()

    def _report_waiting(self) -> None:
        self._setup.on_progress(Progress(Stage.BUILD, 0, 0, self._waiting("using")))

    def _report_waiting_for_timing(self) -> None:
        self._setup.on_progress(Progress(Stage.TIME, 0, 0, self._waiting("being timed on")))

    def _waiting(self, doing: str) -> str:
        others = waiting_before(self._setup.device)
        queue = f", and {others} {'waits' if others == 1 else 'wait'} before this one" if others else ""
        return f"waiting: another grading is {doing} this {self._device.name}{queue}"
