"""Runs a submission for inspection, in the kind of sandbox that grades it. Trusted.

`watch` runs it under a tool: the tool starts the runner, which calls the kernel on each case, with every input in an
allocation of its own (`runner.watched`), and exits; then the tool writes its report. `artefacts` calls the kernel once
and requests documents from its process. Outputs are not compared: grading does that.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.correctness.oracle import load_reference
from harness.judge.session import BuildRequest, Session, SubmissionFault, documents
from harness.judge.session.time_limit import TimeLimit
from harness.languages import LANGUAGES
from harness.problem import Limits, Problem, ResolvedCase
from harness.sandbox import Provider, Watcher
from harness.submission import Submission
from harness.verdict import DeviceKind
from harness.wire import checks, commands, replies

_SLOWER = 10  # times the time to build: kernels with every access checked take many times as long
_LARGER = 4
_ENOUGH_S = 120.0  # no case starts after this
_SUM_UP_S = 60.0


@dataclass
class Watched:
    """The documents of a tool or the runner, and how far the submission got. The submission could forge all of it."""

    calls: int = 0
    """The number of cases on which the kernel was called without a fault."""
    fault: str = ""
    """What ended the calls early, if anything did."""
    documents: dict[str, bytes] = field(default_factory=dict)
    """Their content by name; the names are in `wire.protocol.ARTEFACTS`."""
    too_large: list[str] = field(default_factory=list)
    """One line for each document that was too large to fetch."""

    def text(self, name: str) -> str:
        """A document as printable text; "" if it is missing."""
        return checks.printable(self.documents.get(name, b"").decode("utf-8", "replace"))


def watch(
    problem: Problem,
    submission: Submission,
    watcher: Watcher,
    cases: Sequence[ResolvedCase],
    *,
    provider: Provider,
    device: DeviceKind,
    on_case: Callable[[str], None] = lambda _: None,
) -> Watched:
    """Run one call per case under a tool, in the order of the cases; no call starts after two minutes.

    Raises:
        ProblemError: its reference cannot be loaded, or cannot make inputs.
        HarnessError: the sandbox or the device failed, or the tool did not start the runner.
    """
    limits, watched = larger(problem.limits), Watched()
    limit_s = _SLOWER * limits.build_s
    with (
        closing(load_reference(problem, provider, device)) as reference,
        Session.start(provider, device, limits, watcher=watcher) as session,
    ):
        session.handshake()
        begun = time.monotonic()
        try:
            session.build(BuildRequest.of(problem, submission, cases, device, line_info=True), limit_s)
            for case in cases:
                if time.monotonic() - begun > _ENOUGH_S:
                    break
                on_case(case.name)
                # Inputs are generated in host memory, and the runner copies them.
                call_once(session, GradedCase(problem, reference, "cpu", case), TimeLimit(limit_s), "being watched")
                watched.calls += 1
        except SubmissionFault as failure:
            watched.fault = failure.message
        try:
            offer, limit = session.reconnect(_SUM_UP_S), TimeLimit(_SUM_UP_S)
            found = documents(session, offer, limit, "reading what the tool wrote", watched.too_large)
            watched.documents.update(found)
        except SubmissionFault as failure:
            watched.fault = watched.fault or failure.message
    return watched


def artefacts(
    submission: Submission,
    case: GradedCase,
    provider: Provider,
    command: commands.Profile | commands.Inspect,
    *,
    doing: str,
    sets: int,
    first: commands.CompileOnly | None = None,
) -> Watched:
    """Build the submission in its own sandbox, call it if it runs on this device, then request its documents.

    Args:
        first: a command to send before the build.

    Raises:
        SubmissionFault: it cannot be built or called, or its process broke the protocol.
        HarnessError: the sandbox or the device failed.
    """
    limits, batch, watched = larger(case.problem.limits), case.batch(sets), Watched()
    limit = TimeLimit(limit_s(limits))
    try:
        with Session.start(provider, case.device, limits) as session:
            session.handshake()
            if first is not None:
                session.ask(first, replies.Done, limit=limit, doing=doing)
            request = BuildRequest.of(case.problem, submission, [case.resolved], case.device, line_info=True)
            session.build(request, limits.build_s)
            if case.device in LANGUAGES[submission.language].devices:
                case.bind(session, batch, limit=limit, doing=doing)
                session.ask(commands.Call(sets=(0,)), replies.Done, limit=limit, doing=doing)
            offer = session.ask(command, replies.Profiled, limit=limit, doing=doing)
            watched.documents.update(documents(session, offer, limit, doing, watched.too_large))
    finally:
        batch.close_arenas()
    return watched


def visible_cases(problem: Problem, device: DeviceKind, *, tests: bool) -> list[ResolvedCase]:
    """The visible tests or benchmarks, the smallest first. Hidden cases are left out, because the output of the kernel
    and the tool is published.
    """
    visible = [case for case in (problem.tests if tests else problem.benchmarks) if not case.hidden]
    visible = [case for case in visible if case.memory_gib is None]
    rng = secrets.SystemRandom()
    cases = [problem.resolve(case.drawn(rng)) for case in visible if device in case.devices]
    return sorted(cases, key=lambda case: Layout(case).bytes_per_set)


def limit_s(limits: Limits) -> float:
    """The time limit of a watched call, which takes longer than usual and may have to compile."""
    return limits.time_s + limits.build_s


def larger(limits: Limits) -> Limits:
    """Raise the limits to leave room for a tool, whose memory, threads and files count in the same sandbox."""
    kinds = ("memory_bytes", "processes", "disk_bytes")
    return limits.model_copy(update={kind: getattr(limits, kind) * _LARGER for kind in kinds})


def call_once(session: Session, case: GradedCase, limit: TimeLimit, doing: str) -> None:
    """Call the kernel on one case's inputs.

    Raises:
        SubmissionFault: as for `Session.ask`.
    """
    batch = case.batch(1)
    try:
        case.bind(session, batch, limit=limit, doing=doing)
        session.ask(commands.Call(sets=(0,)), replies.Done, limit=limit, doing=doing)
        session.ask(commands.Release(), replies.Done, limit=limit, doing=doing)
    finally:
        batch.close_arenas()
