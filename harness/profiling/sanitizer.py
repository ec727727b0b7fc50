"""Runs compute-sanitizer on a submission, and finds NVIDIA's tools. Trusted.

The tools' output comes from the sandbox, where a submission could forge it: a report is for an organizer to look into,
and never affects a verdict.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.errors import SandboxError, UsageError
from harness.problem import Problem
from harness.profiling.watch import visible_cases, watch
from harness.sandbox import Provider, Watcher, gpu
from harness.submission import Submission
from harness.verdict import DeviceKind
from harness.wire.checks import printable

ReportState = Literal["clean", "found", "failed"]
_PRINTED_ERRORS = 10
_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: ((\d+) (?:errors?|hazards?))", re.MULTILINE)
_REPORT = re.compile(
    r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)(?:\n=+ {2,}(\S.*))?", re.MULTILINE
)


@dataclass(frozen=True)
class ToolReport:
    """The outcome of a tool, with one line of text."""

    state: ReportState
    text: str
    printed: str = field(default="", compare=False)
    """The tool's whole output, made printable; empty if it did not run."""


def checks() -> dict[str, Watcher]:
    """The checks of compute-sanitizer, by name.

    Raises:
        UsageError: it is not installed.
    """
    path = program("compute-sanitizer", "compute-sanitizer")
    options = (
        "--target-processes", "application-only",
        "--show-backtrace", "no",
        "--report-api-errors", "no",
        "--print-limit", str(_PRINTED_ERRORS),
    )  # fmt: skip
    return {
        name: Watcher((str(path), "--tool", name, *options), path.parent)
        for name in ("memcheck", "racecheck", "initcheck", "synccheck")
    }


def audit(
    watcher: Watcher,
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    on_case: Callable[[str], None] = lambda _: None,
) -> ToolReport:
    """Run the visible tests under compute-sanitizer. If it or the submission fails, the report says so.

    Raises:
        HarnessError: the device failed.
    """
    cases = visible_cases(problem, device, tests=True)
    try:
        watched = watch(problem, submission, watcher, cases, provider=provider, device=device, on_case=on_case)
    except SandboxError as error:  # the tool did not start the runner
        return ToolReport("failed", str(error))
    printed = watched.text("tool output")
    report = sanitized(printed)
    if watched.fault and report.state == "clean":
        return ToolReport("failed", f"{watched.fault}; until then {report.text}", printed)
    return ToolReport(report.state, f"{watched.calls} of {len(cases)} visible tests: {report.text}", printed)


def program(name: str, package: str) -> Path:
    """The path of a program: in the CUDA toolkit, in NVIDIA's folder for its own packages, or on the PATH.

    Raises:
        UsageError: it is in none of them.
    """
    toolkit = gpu.toolkit()
    places = [toolkit / "bin" / name] if toolkit else []
    places += sorted(Path("/opt/nvidia").glob(f"{package}/*/{name}"), reverse=True)
    places += [Path(path)] if (path := shutil.which(name)) else []
    for place in places:
        if place.is_file():
            return place.resolve()
    raise UsageError(f"the program {name!r}", "is not installed", f"install {package} of the CUDA toolkit")


def sanitized(printed: str) -> ToolReport:
    """Read compute-sanitizer's result from its output."""
    summary = _SUMMARY.search(printed)
    if summary is None:
        return ToolReport("failed", last_words(printed))
    if int(summary[2]) == 0:
        return ToolReport("clean", "no errors")
    first = next(iter(faults(printed)), "none printed")
    return ToolReport("found", f"{summary[1]}, the first: {first}")


def faults(printed: str) -> list[str]:
    """The faults that compute-sanitizer printed, with their place in the source where it is known."""
    reports = _REPORT.finditer(printed)
    return [printable(" ".join(part for part in report.groups() if part)[:200]) for report in reports]


def last_words(printed: str) -> str:
    """The last three lines that a tool printed, joined into one."""
    lines = [line.strip("= ") for line in printed.splitlines() if line.strip("= ")]
    return printable(" / ".join(lines[-3:])[:300]) or "it printed nothing"
