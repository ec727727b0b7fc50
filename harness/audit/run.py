"""Runs a submission under a tool that watches it, in the same sandbox that grades it. Trusted.

The tool starts the runner, which calls the kernel on each case, with every input in an allocation of its own
(`runner.watched`), and exits by itself; then the tool prints its summary. Outputs are not compared: grading does that.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from harness import wire
from harness.audit.tools import Tool, ToolReport
from harness.errors import SandboxError
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.layout import Layout
from harness.judge.grading import build_command
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.time_limit import TimeLimit
from harness.problem import Limits, Problem, ResolvedCase
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind

_SLOWER = 10  # limits are multiplied by this: kernels with every access checked take many times as long
_LARGER = 4
_ENOUGH_S = 120.0  # no case starts after this
_SUM_UP_S = 60.0


def audit(
    problem: Problem,
    submission: Submission,
    tool: Tool,
    *,
    provider: Provider,
    device: DeviceKind,
    on_case: Callable[[str], None] = lambda _: None,
) -> ToolReport:
    """Let a tool watch the submission. A tool that cannot work here, or a submission that fails, also gives a report.

    Raises:
        HarnessError: the sandbox or the device failed.
    """
    cases = _cases(problem, tool, device)
    limits = _widened(problem.limits)
    done, fault = 0, ""
    with Session.start(provider, device, limits, watcher=tool.watcher) as session:
        try:
            session.handshake()
        except SandboxError as error:  # the tool exited before the runner started, or does not let it start
            return ToolReport("failed", str(error))
        begun = time.monotonic()
        try:
            command = build_command(problem, submission, cases, device)
            session.hand_over(command, submission.source, limits.build_s)
            for case in cases:
                if time.monotonic() - begun > _ENOUGH_S:
                    break
                on_case(case.name)
                _call(session, problem, case, limits.build_s)
                done += 1
        except SubmissionFault as failure:
            fault = failure.message
        report = tool.read(session.finish(_SUM_UP_S))
    if fault and report.state == "clean":
        return ToolReport("failed", f"{fault}; until then {report.text}")
    what = f"{done} of {len(cases)} tests" if tool.cases == "tests" else cases[0].name
    return ToolReport(report.state, f"{what}: {report.text}")


def _widened(limits: Limits) -> Limits:
    """Limits with room for the tool, which runs in the sandbox with its own memory and threads."""
    slower = {"build_s": limits.build_s * _SLOWER, "call_s": limits.call_s * _SLOWER}
    larger = {"memory_bytes": limits.memory_bytes * _LARGER, "processes": limits.processes * _LARGER}
    return limits.model_copy(update={**slower, **larger})


def _cases(problem: Problem, tool: Tool, device: DeviceKind) -> Sequence[ResolvedCase]:
    """Visible cases only: what the submission and the tools print about them is published."""
    given = [case for case in (problem.tests if tool.cases == "tests" else problem.benchmarks) if not case.hidden]
    rng = secrets.SystemRandom()
    cases = [problem.resolve(case.drawn(rng)) for case in given if device in case.devices]
    if tool.cases == "tests":
        return sorted(cases, key=lambda case: Layout(case).bytes_per_set)
    return [max(cases, key=lambda case: Layout(case).bytes_per_set)]


def _call(session: Session, problem: Problem, case: ResolvedCase, seconds: float) -> None:
    """Call the kernel on one case's inputs, which are drawn in host memory and copied by the runner."""
    layout, doing = Layout(case), "being watched"
    batch = Batch(layout, "cpu", sets=1)
    try:
        commands = layout.commands(case, problem.parameters, 1)
        limit = TimeLimit(seconds)
        session.bind(commands, batch.descriptors, limit=limit, doing=doing)
        session.ask(wire.Call(sets=(0,)), wire.Done, limit=limit, doing=doing)
        session.ask(wire.Release(), wire.Done, limit=limit, doing=doing)
    finally:
        batch.close_arenas()
