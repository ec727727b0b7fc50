"""NVIDIA's tools that watch a kernel: where they are, how they are called, and how their output is read. Trusted.

What they print comes from the sandbox, where a submission could forge it: a report is for an
organizer to look into, and decides nothing.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.audit.watch import visible_cases, watch
from harness.errors import SandboxError, UsageError
from harness.problem import Problem
from harness.sandbox import Provider, Watcher, gpu
from harness.submission import Submission
from harness.verdict import DeviceKind
from harness.wire.checks import printable

State = Literal["clean", "found", "failed"]
_PRINTED_ERRORS = 10
_PROFILED_LAUNCHES = 40
_SHOWN_KERNELS = 3
_NAME = 60  # characters of a kernel's name

_TIME, _READ, _WRITTEN, _DRAM, _SM, _REGISTERS = METRICS = (
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "launch__registers_per_thread",
)
_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: ((\d+) (?:errors?|hazards?))", re.MULTILINE)
_REPORT = re.compile(
    r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)(?:\n=+ {2,}(\S.*))?", re.MULTILINE
)
NO_COUNTERS = "ERR_NVGPUCTRPERM"
PROFILED_CALL = (
    "--profile-from-start", "off",
    "--launch-count", str(_PROFILED_LAUNCHES),
    "--target-processes", "application-only",
    "--clock-control", "none",
)  # fmt: skip
"""Nsight Compute's options for the one call that the runner marks, with the clocks as they are."""


@dataclass(frozen=True)
class ToolReport:
    """What a tool reports, in one line: the number of errors and the first, or the longest kernels of a profile."""

    state: State
    text: str
    printed: str = field(default="", compare=False)
    """All that it printed, printable, if it ran."""


@dataclass(frozen=True)
class Tool:
    """A tool, the cases that it watches, and how its output is read."""

    name: str
    watcher: Watcher
    cases: Literal["tests", "largest benchmark"]
    read: Callable[[str], ToolReport]


def find() -> tuple[Tool, ...]:
    """Memcheck, racecheck, initcheck and synccheck of compute-sanitizer, and Nsight Compute.

    Raises:
        UsageError: one of the two programs is not installed.
    """
    profiler = program("ncu", "nsight-compute")
    profile = (
        "--csv", "--page", "raw", "--print-units", "base",
        "--metrics", ",".join(METRICS),
        *PROFILED_CALL,
    )  # fmt: skip
    ncu = Tool("ncu", Watcher((str(profiler), *profile), profiler.parent), "largest benchmark", profiled)
    return (*sanitizers(), ncu)


def sanitizers() -> tuple[Tool, ...]:
    """The checks of compute-sanitizer.

    Raises:
        UsageError: it is not installed.
    """
    sanitizer = program("compute-sanitizer", "compute-sanitizer")
    options = (
        "--target-processes", "application-only",
        "--show-backtrace", "no",
        "--report-api-errors", "no",
        "--print-limit", str(_PRINTED_ERRORS),
    )  # fmt: skip
    return tuple(
        Tool(name, Watcher((str(sanitizer), "--tool", name, *options), sanitizer.parent), "tests", sanitized)
        for name in ("memcheck", "racecheck", "initcheck", "synccheck")
    )


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
    """What compute-sanitizer found."""
    summary = _SUMMARY.search(printed)
    if summary is None:
        return ToolReport("failed", _last_words(printed))
    if int(summary[2]) == 0:
        return ToolReport("clean", "no errors")
    first = next(iter(faults(printed)), "none printed")
    return ToolReport("found", f"{summary[1]}, the first: {first}")


def faults(printed: str) -> list[str]:
    """Each fault that compute-sanitizer printed, with its place in the source where that is known."""
    reports = _REPORT.finditer(printed)
    return [printable(" ".join(part for part in report.groups() if part)[:200]) for report in reports]


def profiled(printed: str) -> ToolReport:
    """What Nsight Compute measured: the launches of one call, the longest first."""
    lines = [line for line in printed.splitlines() if line.startswith('"')]
    try:
        rows = [row for row in csv.DictReader(lines) if row.get("ID")]
        launches = sorted(((float(row[_TIME].replace(",", "")), row) for row in rows), key=lambda launch: -launch[0])
        shown = [_kernel(nanoseconds, row) for nanoseconds, row in launches[:_SHOWN_KERNELS]]
    except (KeyError, ValueError, AttributeError, csv.Error) as error:
        return ToolReport("failed", f"its table cannot be read ({type(error).__name__}: {error})")
    if not shown:
        return ToolReport("failed", no_counters(printed))
    total = sum(nanoseconds for nanoseconds, _ in launches)
    count = f"{len(launches)} kernel{'s' if len(launches) > 1 else ''}"
    return ToolReport("clean", f"{count}, {total / 1000:,.1f} µs in all: {'; '.join(shown)}")


def no_counters(printed: str) -> str:
    """Why Nsight Compute measured nothing, and the remedy if it may not read the counters."""
    remedy = "; an administrator can let others than root read them (NVreg_RestrictProfilingToAdminUsers=0)"
    return _last_words(printed) + (remedy if NO_COUNTERS in printed else "")


def _kernel(nanoseconds: float, row: dict[str, str]) -> str:
    def number(metric: str) -> float:
        return float(row[metric].replace(",", ""))

    name = printable(row["Kernel Name"])[:_NAME]
    moved = (number(_READ) + number(_WRITTEN)) / 1e6
    shares = f"{moved:,.1f} MB, DRAM {number(_DRAM):.0f} % and SM {number(_SM):.0f} % of their peaks"
    return f"{name} {nanoseconds / 1000:,.1f} µs, {shares}, {number(_REGISTERS):.0f} registers"


def _last_words(printed: str) -> str:
    lines = [line.strip("= ") for line in printed.splitlines() if line.strip("= ")]
    return printable(" / ".join(lines[-3:])[:300]) or "it printed nothing"
