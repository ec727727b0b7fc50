"""One tool's report on one submission. Trusted."""

from __future__ import annotations

from collections.abc import Callable

from harness.audit.tools import Tool, ToolReport
from harness.audit.watch import visible_cases, watch
from harness.errors import SandboxError
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind


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
        HarnessError: the device failed.
    """
    cases = visible_cases(problem, device, tests=tool.cases == "tests")
    if tool.cases != "tests":
        cases = cases[-1:]
    try:
        watched = watch(problem, submission, tool.watcher, cases, provider=provider, device=device, on_case=on_case)
    except SandboxError as error:  # the tool does not let the runner start
        return ToolReport("failed", str(error))
    printed = watched.text("tool output")
    report = tool.read(printed)
    if watched.fault and report.state == "clean":
        return ToolReport("failed", f"{watched.fault}; until then {report.text}", printed)
    what = f"{watched.calls} of {len(cases)} visible tests" if tool.cases == "tests" else cases[0].name
    return ToolReport(report.state, f"{what}: {report.text}", printed)
