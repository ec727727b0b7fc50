"""Runs the stages of one grading in order, from the build to the verdict, and keeps their results. Trusted."""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import torch

from harness.device import DEVICES
from harness.errors import DeviceError, HarnessError, ProblemError, SubmissionError
from harness.judge import hints
from harness.judge.compile_ahead import compile_ahead
from harness.judge.correctness.cases import Correctness, beyond_budget, result
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.known import known_inputs
from harness.judge.correctness.oracle import Oracle, load_reference, with_cost
from harness.judge.device_memory import DeviceMemory
from harness.judge.session import BuildRequest, Builds, Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.judge.setup import Progress, Setup
from harness.judge.timing.interface import Benchmarks, TimingMethod
from harness.judge.timing.overall import failed_baselines, score, speedups
from harness.languages import LANGUAGES
from harness.problem import Case, ResolvedCase
from harness.verdict import (
    CaseResult,
    Check,
    Doubt,
    Environment,
    Outcome,
    PrivateId,
    ProblemId,
    Stage,
    SubmissionId,
    Verdict,
)  # fmt: skip
from harness.verdict.case import outcome_of
from harness.wire import commands, protocol, replies

_log = logging.getLogger("kernelmark")


class _VisiblePart(NamedTuple):
    """When the part of a grading that the verdict may show ended, and how long it took."""

    created_at: datetime
    duration_ns: int


class Grading:
    """The state of one grading, which is used once, by `check` or by `grade`.

    The effort "screen" runs the tests from the smallest to the largest, stops at the first failure, and times only the
    largest benchmark case. `fail_fast` stops at the first failure in the problem's order. `only` names the tests
    to run; hidden tests do not run then.
    """

    def __init__(self, setup: Setup, builds: Builds) -> None:
        self._builds = builds
        self._setup, self._submission = setup, setup.submission
        self._problem = setup.problem if setup.hidden else setup.problem.without_hidden
        self._device = DEVICES[setup.device]
        self._started_ns = time.perf_counter_ns()
        tests, benchmarks = self._cases("tests"), self._cases("benchmarks")
        self._runs_here = setup.device in LANGUAGES[setup.submission.language].devices
        if not self._device.on_host and not self._runs_here:
            what = f"a .{setup.submission.language} kernel does not run on a GPU"
            raise SubmissionError(setup.submission.name, what, "use the device cpu, or submit a .cu")
        self._reference = load_reference(setup.problem, setup.provider, setup.device)
        graded = partial(GradedCase, self._problem, self._reference, setup.device)
        tested = list(map(graded, tests))
        timed = [graded(with_cost(self._reference, case, setup.device)) for case in benchmarks]
        self._ends_early = setup.fail_fast or setup.effort == "screen"
        if setup.effort == "screen":
            tested.sort(key=_size)
            timed = [max(timed, key=_size)]
        self._tests = [case for case in tested if not case.hidden and (not setup.only or case.name in setup.only)]
        self._hidden = [case for case in tested if case.hidden and not setup.only]
        self._test_count = len(tested)
        self._benchmarks = timed
        self._memory = DeviceMemory(setup.device)  # creates the judge's CUDA context while the runner creates its own
        self._to_time = Benchmarks(
            setup.problem, setup.device, timed, builds, self._report_progress, self._end_idle_runner
        )
        self._correctness = Correctness(setup.on_failure)
        self._stage = Stage.BUILD
        self._build_log = self._traceback = ""
        self._results: list[CaseResult] = []
        self._runner_is_gone = self._has_helpers = False
        self._before_hidden: _VisiblePart | None = None
        self.memory_was_short = False
        """Whether the device had next to no free memory when the submission failed."""

    def close(self) -> None:
        """End the sandbox of a foreign reference. Idempotent."""
        self._reference.close()

    def check(self, session: Session) -> Check:
        """Build and test."""
        return self._check(session, *self._run(session, None))

    def grade(self, session: Session, timing: TimingMethod) -> Verdict:
        """Build, test and time.

        Raises:
            NotReplayed: this submission cannot be timed that way.
        """
        outcome, message = self._run(session, timing)
        accepted = outcome is Outcome.ACCEPTED
        ended = self._before_hidden or self._visible_part()
        known: tuple[Doubt, ...] = ()
        if accepted and isinstance(self._reference, Oracle):
            timed = [case.resolved for case in self._benchmarks]
            known = known_inputs(self._problem, self._reference, timed, self._setup.device)
        return Verdict(
            **dict(self._check(session, outcome, message)),
            run=self._setup.run,
            created_at=ended.created_at,
            duration_ns=ended.duration_ns,
            effort=self._setup.effort,
            timing=timing.kind,
            ranked_timing=timing.kind if self._device.on_host else self._problem.timing,
            benchmarks=tuple(timing.timed),
            requested_baselines=tuple(baseline.name for baseline in timing.baselines),
            speedups=tuple(speedups(timing)) if accepted else (),
            doubts=(
                *timing.doubts,
                *failed_baselines(timing, accepted=accepted),
                *beyond_budget(self._results),
                *known,
            ),
            score=score(timing.timed) if accepted else None,
        )

    def _cases(self, kind: str) -> list[ResolvedCase]:
        rng = secrets.SystemRandom()  # no seed in a verdict may reveal the sizes
        cases = filter(self._fits_device, getattr(self._problem, kind))
        drawn = [self._problem.resolve(case.drawn(rng)) for case in cases]
        if not drawn:
            what = f"key `{kind}` has no case for the device {self._setup.device}"
            raise ProblemError(str(self._problem.directory / "problem.toml"), what, "use another device")
        return drawn

    def _fits_device(self, case: Case) -> bool:
        """Whether the device has the memory that the case needs. A test that was requested by name runs anyway."""
        enough = not case.memory_gib or self._device.memory_bytes() >= case.memory_gib << 30
        return self._setup.device in case.devices and (enough or case.name in self._setup.only)

    def _run(self, session: Session, timing: TimingMethod | None) -> tuple[Outcome, str]:
        """Run the stages until one of them decides; returns the outcome and its message of one line."""
        try:
            with ThreadPoolExecutor(1) as beside:
                warmed = beside.submit(self._warm_up_checks)
                try:
                    session.handshake()
                    return self._run_stages(session, timing, warmed)
                finally:
                    if not warmed.done():
                        self._reference.close()  # a foreign one may take minutes
        except (torch.OutOfMemoryError, DeviceError) as error:
            hidden = self._stage is Stage.HIDDEN
            if why := self._memory.held_too_much(session):
                return Outcome.MEMORY_LIMIT, "memory limit in a hidden test" if hidden else why
            if hidden:  # its message could reveal the sizes of the hidden case
                raise DeviceError(
                    "the judge ran out of device memory in a hidden test", "use a larger device"
                ) from None
            if isinstance(error, DeviceError):
                raise
            text = str(error).partition(" Process ")[0]  # after that PyTorch lists every process on the GPU
            raise DeviceError(f"the judge ran out of device memory ({text})", "use a larger device") from error

    def _warm_up_checks(self) -> None:
        for case in () if self._device.on_host else self._tests[:1]:
            self._correctness.warm_up_checks(case)

    def _run_stages(self, session: Session, timing: TimingMethod | None, warmed: Future[None]) -> tuple[Outcome, str]:
        """`warmed`: the checks are warmed up while the runner starts and builds, but not while anything is timed."""
        if timing and timing.kind == "calls":
            warmed.result()
        if timing:
            timing.measure_before_build(session, self._to_time)
        try:
            self._build(session, self._benchmarks if timing else ())
            warmed.result()
            self._test(session)
            if timing and not self._failed():
                session.output.begin("timing")
                # The time for which the device was waited for is not part of the grading's duration.
                self._started_ns += timing.time_with_runner(session, self._to_time)
            if not self._runner_is_gone and not (self._ends_early and self._failed()):
                self._test_hidden(session)
            if not self._runner_is_gone:
                self._log_compiled(session)
            if timing and not self._failed():
                self._time_without_runner(session, timing)
        except SubmissionFault as fault:
            self._traceback = fault.traceback
            self._build_log = self._build_log or fault.printed
            self._look_at_memory()
            return fault.outcome, fault.message
        if self._failed():
            return self._test_outcome()
        if self._not_run:
            right = (
                "the test that ran is" if len(self._results) == 1 else f"the {len(self._results)} tests that ran are"
            )
            return Outcome.INCOMPLETE, f"{right} right ({self._not_run} not run)"
        return Outcome.ACCEPTED, ""

    def _end_idle_runner(self, session: Session) -> None:
        """End the runner if it has nothing left to do: it and PyTorch may hold a lot of memory."""
        if not self._hidden:
            self._log_compiled(session)
            self._end_runner(session)

    def _end_runner(self, session: Session) -> None:
        session.close()
        self._runner_is_gone = True

    def _time_without_runner(self, session: Session, timing: TimingMethod) -> None:
        """Time everything that needs no runner.

        The recorded duration excludes the hidden tests and the end of the runner, so that it reveals nothing of them.
        """
        self._end_runner(session)
        ended = self._before_hidden or self._visible_part()
        self._before_hidden = ended._replace(duration_ns=ended.duration_ns + timing.time_without_runner(self._to_time))

    def _add_result(self, tested: CaseResult) -> None:
        self._results.append(tested)
        if tested.outcome is not Outcome.ACCEPTED:
            self._look_at_memory()

    def _look_at_memory(self) -> None:
        self.memory_was_short = self.memory_was_short or self._memory.is_short()

    def _failed(self) -> list[CaseResult]:
        return [r for r in self._results if r.outcome is not Outcome.ACCEPTED]

    def _test_outcome(self) -> tuple[Outcome, str]:
        """The outcome when some tests failed, and the message of the first test with that outcome."""
        outcome = outcome_of(self._results)
        first = next(test for test in self._results if test.outcome is outcome)
        self._traceback = self._correctness.tracebacks.get(first.name, "")
        missed = f" ({self._not_run} not run)" if self._not_run else ""
        named = f"running test {first.name}" in first.message  # the message of a fault already names the test
        return outcome, ("" if named else f"test {first.name}: ") + first.message + missed

    @property
    def _not_run(self) -> int:
        return self._test_count - len(self._results)

    def _report_progress(self, stage: Stage, done: int, total: int, label: str) -> None:
        self._stage = stage
        self._setup.on_progress(Progress(stage, done, total, label))

    def _build(self, session: Session, timed: Sequence[GradedCase]) -> None:
        self._report_progress(Stage.BUILD, 0, 1, self._submission.name)
        request = self._build_request()
        built = session.build(request, self._problem.limits.build_s)
        self._build_log = built.log
        self._has_helpers = not request.objects  # what a separate build made is complete, and ends them
        if self._has_helpers:  # the runner itself compiles the kernels of the first test
            cases = [case.resolved for case in (*self._tests[1:], *timed)]
            compile_ahead(self._setup, session, cases, TimeLimit(self._problem.limits.build_s))
        if not self._runs_here:
            what = f"compiles for {self._device.architecture()}, but there is no GPU here to run it on"
            raise SubmissionError(self._submission.name, what, "grade it on a machine with a CUDA device")

    def _log_compiled(self, session: Session) -> None:
        if _log.isEnabledFor(logging.DEBUG):
            with contextlib.suppress(SubmissionFault):
                counted = session.ask(commands.Count(), replies.Counted, limit=TimeLimit(1), doing="counting")
                _log.debug("Triton: %d kernels compiled ahead, %d when called", counted.found, counted.compiled)

    def _test(self, session: Session) -> None:
        for i, case in enumerate(self._tests):
            self._report_progress(Stage.TEST, i, len(self._tests), case.name)
            session.output.begin(f"test {case.name}")
            try:
                self._add_result(self._correctness.run(session, case, case.name))
            except SubmissionFault as fault:
                # The runner is gone, so the remaining tests cannot run.
                message = fault.message
                if fault.memory_fault:
                    name = self._written_input(case)
                    wrote = f"wrote to its input `{name}`, which is read-only: " if name else ""
                    hint = hints.debug(self._setup, case.resolved)
                    hint = hint or ("" if name else hints.declaration(self._setup, case.resolved))
                    message = f"{wrote}{message}{hint}"
                self._add_result(result(case.resolved, case.name, fault.outcome, message))
                self._correctness.tracebacks[case.name] = fault.traceback
                self._runner_is_gone = True
                return
            if self._ends_early and self._failed():
                return

    def _test_hidden(self, session: Session) -> None:
        """Run the hidden tests last, since anything that the submission says from then on could leak their sizes.

        Only the outcome of each test is kept: no printed text, message, traceback or time. Progress does not show when
        a test begins.
        """
        session.output.discard()
        self._before_hidden = self._visible_part()
        if self._hidden:
            self._report_progress(Stage.HIDDEN, 0, 0, "tests")
        for i, case in enumerate(self._hidden):
            label = f"hidden {i + 1}"
            try:
                if not i and self._has_helpers:
                    cases = [later.resolved for later in self._hidden[1:]]
                    compile_ahead(self._setup, session, cases, TimeLimit(self._problem.limits.call_s))
                self._add_result(self._correctness.run(session, case, label))
                if self._ends_early and self._failed():
                    break
            except SubmissionFault as fault:
                self._add_result(result(case.resolved, label, fault.outcome, ""))
                break  # the runner is gone
            except ProblemError:
                remedy = "`kernelmark problems lint` says why"
                raise ProblemError(str(self._problem.directory), "fails in a hidden test", remedy) from None

    def _visible_part(self) -> _VisiblePart:
        return _VisiblePart(datetime.now(UTC), time.perf_counter_ns() - self._started_ns)

    def _written_input(self, case: GradedCase) -> str | None:
        """After a memory fault, repeat the case in a new sandbox; returns the input that the submission wrote to."""
        try:
            with Session.start(self._setup.provider, self._setup.device, self._problem.limits) as session:
                session.handshake()
                session.build(self._build_request(), self._problem.limits.build_s)
                return self._correctness.changed_input(session, case)
        except (SubmissionFault, HarnessError):
            return None  # this only improves the message; the outcome is already decided

    def _build_request(self) -> BuildRequest:
        cases = [test.resolved for test in self._tests + self._hidden + self._benchmarks]
        return self._builds.with_objects(BuildRequest.of(self._problem, self._submission, cases, self._setup.device))

    def _check(self, session: Session, outcome: Outcome, message: str) -> Check:
        printed = session.output.text()
        return Check(
            outcome=outcome,
            stage=self._stage,
            message=message,
            problem=self._problem_id(),
            submission=SubmissionId.of(self._submission),
            environment=self._environment(session),
            protocol=protocol.PROTOCOL,
            seeds=tuple(self._correctness.seeds),
            tests=tuple(self._results),
            tests_not_run=self._not_run,
            log="\n".join(part for part in (self._build_log, printed) if part),
            traceback=self._traceback,
        )

    def _environment(self, session: Session) -> Environment:
        """Where the submission ran.

        The versions come from the runner's first two frames, which it sent before the submission was in its sandbox.
        Whether Triton's interpreter ran is the only claim of the submission itself; claiming it leads to another table.
        """
        provider = self._setup.provider
        return Environment(
            device_kind=self._setup.device,
            **self._device.facts()._asdict(),
            sandbox=provider.name,
            image_digest=provider.image_digest(),
            interpreted=session.interpreted,
            python=session.hello.python,
            torch=session.ready.torch,
            triton=session.ready.triton or None,
        )

    def _problem_id(self) -> ProblemId:
        problem, private = self._setup.problem, None
        if problem.private:
            cases = sum(self._setup.device in case.devices for case in problem.private_tests)
            private = PrivateId(sha256=problem.private.sha256, cases=cases)
        return ProblemId(slug=problem.slug, sha256=problem.sha256, private=private)


def _size(case: GradedCase) -> int:
    return case.layout.bytes_per_set
