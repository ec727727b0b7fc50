"""One grading with its sandboxes: when they start, in which way calls are timed, and who else may use the device.

Trusted. The sandboxes start before torch is imported, and boot meanwhile.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.arena import free_deferred, warm_context
from harness.device import DEVICES
from harness.errors import HarnessError
from harness.judge.compile_ahead import helpers, requests, visible_cases
from harness.judge.session import Builds, Handover, Session, Sessions
from harness.judge.session.builds import Ahead, Turn
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
        self._last: Grading | None = None
        self._lock, self._closed = threading.RLock(), False
        warm_context(setup.device)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def build(self, turn: Turn = contextlib.nullcontext, *, triton: bool = False) -> None:
        """Compile the submission and the baselines in sandboxes without the device. Without this call, grading does it.

        It waits for compilers only, and for `turn`, which is called with their number before each build. So a process
        that grades many submissions calls it before there is a free slot for the rest. Idempotent.

        `triton`: also compile the submission's Triton kernels, which its runner would otherwise compile during the
        tests. That takes one more sandbox, but shortens the tests, during which no other grading can be timed.

        Raises:
            UsageError: the problem or the submission cannot be graded.
        """
        setup, compiled = self._setup, self._compiled()
        ahead: list[Ahead] = []
        if triton and not self._has_built and setup.submission not in compiled and helpers(setup):
            ahead = [command for case in visible_cases(setup) for command in requests(setup, case)]
            compiled = [setup.submission, *compiled] if self._builds.are_apart else compiled
        self._has_built = True
        for submission in compiled:
            self._refuse_if_closed()
            setup.on_progress(Progress(Stage.BUILD, 0, 1, submission.name))
            problem = setup.problem if submission is setup.submission else setup.problem.of_baseline(submission.stem)
            case = problem.tests[0].drawn(secrets.SystemRandom())  # its sizes do not matter
            handover = Handover.of(problem, submission, [problem.resolve(case)], setup.device)
            self._builds.build(handover, turn, ahead if submission is setup.submission else ())

    def _compiled(self) -> list[Submission]:
        """The submissions that are still to be compiled."""
        setup = self._setup
        given = [] if self._has_built else [setup.submission, *setup.baselines]
        return list(filter(self._builds.concerns, given))

    def _build_beside(self, *, replayed: bool) -> None:
        """Build while the runner starts and torch is imported, and before this grading holds what others wait for."""
        if self._compiled():
            self._started(replayed=replayed).start_all()
            threading.Thread(target=import_torch).start()  # an error comes again where torch is needed
            self.build()

    def start(self) -> None:
        """Let the sandboxes of `grade` start now, so that it finds them ready: a process that grades many calls this
        early.

        Does nothing where calls run on the judge's own processors: a start would take them from calls being timed.
        """
        if not self._device.on_host:
            self._started(replayed=self._replays).start_all()

    def adopt(self, ahead: Sessions) -> None:
        """Use these sandboxes, which started ahead, if they are what the grading needs; they end with it."""
        self._ahead = ahead

    def wait(self) -> None:
        """Wait until the sandboxes that `start` began are up, with torch imported.

        Raises:
            SandboxError: one did not start.
        """
        if self._sessions is not None:
            self._sessions.wait()

    def close(self) -> None:
        """End the sandboxes, and release the device's memory. Idempotent; when it returns, they are gone.

        Another thread may call it: a grading that still runs then fails, and starts none.
        """
        self._closed = True
        self._builds.close()
        self._end()

    def _end(self) -> None:
        with self._lock:  # the second to come waits until the first has ended them
            held, self._sessions, self._ahead = (self._sessions, self._ahead), None, None
            for sessions in held:
                if sessions is not None:
                    sessions.close()
            if self._last is not None:
                self._last.close()
        if not self._setup.keeps_memory:
            free_deferred(self._setup.device)

    def check(self) -> Check:
        """Build the submission and run all test cases.

        Raises:
            UsageError, HarnessError: as for `harness.judge.check`.
        """
        self._build_beside(replayed=False)
        session = self._runner(replayed=False)
        return self._grading().check(session)

    def grade(self, *, alone: bool = False) -> Verdict:
        """Build the submission, run all test cases, and time all benchmark cases.

        `alone`: let no other grading use the device meanwhile; otherwise others can until it is timed.

        Raises:
            UsageError, HarnessError: as for `harness.judge.grade`.
        """
        if not self._replays:
            return self._in_rounds("", alone=alone)
        try:
            return self._replayed(alone=alone)
        except NoMemoryToReplay as error:
            why, again = str(error), not alone
        except NotReplayed as error:
            why, again = str(error), False
        # Outside the handlers, whose exceptions keep device memory alive.
        if again:
            try:
                return self._replayed(alone=True)
            except NotReplayed as error:
                why = str(error)
        return self._in_rounds(why, alone=True)

    @property
    def _replays(self) -> bool:
        return self._device.captures and self._setup.problem.timing == "replayed"

    def _in_rounds(self, why: str, *, alone: bool = True) -> Verdict:
        """Grade in rounds of plain calls; `why` is the reason that calls which should be replayed are not.

        On a GPU no other grading has the device meanwhile: a runner that waited for its turn would keep its memory.
        """
        setup, held = self._setup, alone or not self._device.on_host
        self._build_beside(replayed=False)
        with lock_alone(setup.device, self._waits) if held else contextlib.nullcontext(), self._ending():
            session = self._runner(replayed=False)
            from harness.judge.timing.rounds.baseline import Baseline
            from harness.judge.timing.rounds.timing import RoundsTiming, Turn

            beside, _ = self._started(replayed=False).others()
            paired = list(map(Baseline, self._baseline_labels, setup.baselines, beside))
            turn = Turn(setup.device, self._waits_to_be_timed, self._fresh, held)
            timing = RoundsTiming(setup.effort, turn, paired, setup.calibrations, why)
            return self._grading().grade(session, timing)

    def _replayed(self, *, alone: bool) -> Verdict:
        """Grade with replayed calls.

        Raises:
            NotReplayed: the calls cannot be replayed.
        """
        setup = self._setup
        self._build_beside(replayed=True)
        with contextlib.ExitStack() as stack:
            shared = stack.enter_context(contextlib.ExitStack())
            shared.enter_context((lock_alone if alone else lock_shared)(setup.device, self._waits))
            stack.enter_context(self._ending())
            runner = self._runner(replayed=True)
            from harness.judge.timing.replayed.launcher import LauncherSession
            from harness.judge.timing.replayed.timing import ReplayedBaseline, ReplayedTiming

            beside, sessions = self._started(replayed=True).others()
            launcher, *others = [LauncherSession(session, setup.device) for session in sessions]

            @contextlib.contextmanager
            def while_timed() -> Iterator[None]:
                if alone:
                    yield
                    return
                shared.close()
                with lock_alone(setup.device, self._waits):
                    yield

            recorded = list(map(ReplayedBaseline, self._baseline_labels, setup.baselines, beside, others))
            timing = ReplayedTiming(setup.effort, launcher, recorded, setup.calibrations, while_timed)
            return self._grading().grade(runner, stack.enter_context(timing))

    @property
    def sandboxes(self) -> int:
        """How many `grade` has at a time; on a GPU each has a context."""
        runners = 1 + len(self._setup.baselines)
        return 2 * runners if self._replays else runners

    @property
    def memory_was_short(self) -> bool:
        """Whether the submission failed while the device had next to no free memory, which others may have had."""
        return self._last is not None and self._last.memory_was_short

    @property
    def _baseline_labels(self) -> list[str]:
        return [self._setup.problem.baseline_label(kernel.stem) for kernel in self._setup.baselines]

    def _grading(self) -> Grading:
        from harness.judge.grading import Grading

        self._last = Grading(self._setup, self._builds)
        return self._last

    def _started(self, *, replayed: bool) -> Sessions:
        """The sandboxes, which start now if they have not.

        Raises:
            HarnessError: the grading was closed.
        """
        with self._lock:
            self._refuse_if_closed()
            if self._sessions is None:
                limits, baselines = self._setup.problem.limits, len(self._setup.baselines)
                self._sessions = Sessions(
                    self._setup.provider, self._setup.device, limits, baselines=baselines, replayed=replayed
                )
                if self._ahead is not None and self._ahead.are_as(self._sessions):
                    self._sessions, self._ahead = self._ahead, None
                    self._sessions.wake()
            return self._sessions

    def _runner(self, *, replayed: bool) -> Session:
        """The submission's runner, once it is launched; its sandbox starts while torch is imported here.

        Raises:
            HarnessError: it did not start, or the grading was closed.
        """
        sessions = self._started(replayed=replayed)
        sessions.start_all()
        import_torch()
        return sessions.runner()

    def _fresh(self) -> Session:
        """One more sandbox.

        Raises:
            HarnessError: the grading was closed.
        """
        self._refuse_if_closed()
        return Session.start(self._setup.provider, self._setup.device, self._setup.problem.limits)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise HarnessError("the grading was closed")

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """End the sandboxes on leaving; another way of timing starts new ones."""
        try:
            yield
        finally:
            self._end()

    def _waits(self) -> None:
        self._setup.on_progress(Progress(Stage.BUILD, 0, 0, self._waiting("using")))

    def _waits_to_be_timed(self) -> None:
        self._setup.on_progress(Progress(Stage.TIME, 0, 0, self._waiting("being timed on")))

    def _waiting(self, doing: str) -> str:
        others = waiting_before(self._setup.device)
        queue = f", and {others} {'waits' if others == 1 else 'wait'} before this one" if others else ""
        return f"waiting: another grading is {doing} this {self._device.name}{queue}"
