"""Runs Nsight Compute on one call, and reads its report, its details (text and CSV) and each kernel's metrics. Trusted.

`kernelmark profile` shows all of it, `kernelmark audit` one line. The tool runs in the submission's sandbox, where all
of its output could be forged, so the output is bounded and made printable.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.errors import SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.problem import Problem
from harness.profiling.sanitizer import ToolReport, last_words, program
from harness.profiling.watch import Watched, visible_cases, watch
from harness.sandbox import Provider, Watcher
from harness.submission import Submission
from harness.verdict import DeviceKind

REPORT = "report.ncu-rep"
SECTIONS = (
    *("SpeedOfLight", "Occupancy", "MemoryWorkloadAnalysis", "WarpStateStats", "SchedulerStats", "LaunchStats"),
    *("ComputeWorkloadAnalysis", "SourceCounters"),
)
_ROWS, _KERNELS, _TEXT = 50_000, 64, 200
MEMORY, ARITHMETIC, OCCUPANCY = "Memory Throughput", "Compute (SM) Throughput", "Achieved Occupancy"
DURATION, REGISTERS = "Duration", "Registers Per Thread"
_MAX_KERNELS = 3  # kernels in an audit's line
_COLUMNS = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
_UNITS = {"us": "µs"}
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_NO_COUNTERS = "ERR_NVGPUCTRPERM"
_ONE_CALL = (
    "--profile-from-start", "off",
    "--launch-count", "40",
    "--target-processes", "application-only",
    "--clock-control", "none",
)  # fmt: skip
"""Measure only the call that the runner marks, and leave the clocks alone."""
_BUSY = 60.0  # % of its peak from which Nsight Compute calls a unit well used


@dataclass(frozen=True)
class NsightMetric:
    """One line of a section, as Nsight Compute prints it."""

    section: str
    breakdown: str
    """The table of the section that the line belongs to; "" for the section's main table."""
    name: str
    unit: str
    value: str


@dataclass
class KernelMetrics:
    """The metrics of one kernel launch."""

    name: str
    metrics: list[NsightMetric] = field(default_factory=list)

    def percent(self, name: str) -> float | None:
        """A metric in percent; None if it is missing, or NaN, as version 2026.2 prints in containers."""
        found = (m for m in self.metrics if m.name == name and m.unit == "%" and not m.breakdown)
        return next(map(_number, found), None)

    @property
    def duration_ns(self) -> float:
        """The duration of the launch in ns; 0 if unknown."""
        found = next((metric for metric in self.metrics if metric.name == DURATION), None)
        return (_number(found) or 0.0) * _NS.get(found.unit, 0.0) if found else 0.0

    def text(self, name: str) -> str:
        """A metric with its unit; "" if it is missing."""
        named = (metric for metric in self.metrics if metric.name == name)
        return next((f"{metric.value} {_UNITS.get(metric.unit, metric.unit)}" for metric in named), "")

    @property
    def bound(self) -> str:
        """What limits it: the busier of memory and arithmetic, or latency if neither is busy; "" if unknown."""
        memory, arithmetic = self.percent(MEMORY), self.percent(ARITHMETIC)
        if memory is None or arithmetic is None:
            return ""
        if max(memory, arithmetic) < _BUSY:
            return "latency"
        return "memory" if memory >= arithmetic else "arithmetic"


def _number(metric: NsightMetric) -> float | None:
    try:
        value = float(metric.value.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass
class NsightProfile:
    """The report of Nsight Compute, and the metrics read from it."""

    version: str
    report: bytes
    details: str
    table: str
    """CSV, one line for each metric."""
    kernels: list[KernelMetrics]
    """In launch order."""


def watcher() -> Watcher:
    """The command that runs Nsight Compute around one call.

    Raises:
        UsageError: it is not installed.
    """
    ncu = program("ncu", "nsight-compute")
    sections = [word for name in SECTIONS for word in ("--section", name)]
    command = (str(ncu), "--export", REPORT, "--force-overwrite", *sections, *_ONE_CALL)
    shown = (str(ncu), "--import", REPORT, "--page", "details", "--print-details", "all")
    views = {"tool details": shown, "tool table": (*shown, "--csv"), "tool version": (str(ncu), "--version")}
    return Watcher(command, ncu.parent, REPORT, views)


class NothingMeasured(Exception):
    """Nsight Compute wrote no report; the message says why, in one line."""


def profile(submission: Submission, case: GradedCase, provider: Provider) -> NsightProfile:
    """Measure one call of this case in its own sandbox.

    Raises:
        NothingMeasured: the tool or the submission failed before there was a report.
        UsageError: Nsight Compute is not installed.
        HarnessError: the sandbox or the device failed.
    """
    try:
        watched = watch(case.problem, submission, watcher(), [case.resolved], provider=provider, device=case.device)
    except SandboxError as error:  # the tool did not start the runner
        raise NothingMeasured(str(error)) from None
    return read(watched)


def audit(
    problem: Problem,
    submission: Submission,
    *,
    provider: Provider,
    device: DeviceKind,
    on_case: Callable[[str], None] = lambda _: None,
) -> ToolReport:
    """Measure one call of the largest visible benchmark, and report its longest kernels in one line.

    Raises:
        UsageError: Nsight Compute is not installed.
        HarnessError: the device failed.
    """
    [*_, case] = visible_cases(problem, device, tests=False)
    try:
        watched = watch(problem, submission, watcher(), [case], provider=provider, device=device, on_case=on_case)
        kernels = read(watched).kernels
    except (SandboxError, NothingMeasured) as error:
        return ToolReport("failed", str(error))
    if watched.fault or not kernels:
        return ToolReport("failed", watched.fault or "its table cannot be read")
    longest = sorted(kernels, key=lambda kernel: -kernel.duration_ns)[:_MAX_KERNELS]
    count = f"{len(kernels)} kernel{'s' if len(kernels) > 1 else ''}"
    return ToolReport("clean", f"{case.name}: {count}: {'; '.join(map(_in_short, longest))}")


def _in_short(kernel: KernelMetrics) -> str:
    shares = {"memory": kernel.percent(MEMORY), "arithmetic": kernel.percent(ARITHMETIC)}
    known = (f"{name} {share:.0f} % of its peak" for name, share in shares.items() if share is not None)
    return ", ".join(filter(None, (f"{kernel.name[:60]} {kernel.text(DURATION)}", *known, kernel.text(REGISTERS))))


def read(watched: Watched) -> NsightProfile:
    """Read the documents that Nsight Compute wrote.

    Raises:
        NothingMeasured: there is no report.
    """
    printed = watched.text("tool output")
    if _NO_COUNTERS in printed or "tool report" not in watched.documents:
        remedy = "an administrator can let others than root read them (NVreg_RestrictProfilingToAdminUsers=0)"
        why = (watched.fault, last_words(printed), remedy if _NO_COUNTERS in printed else "")
        raise NothingMeasured("; ".join(filter(None, why)))
    table = "".join(f"{line}\n" for line in watched.text("tool table").splitlines() if line.startswith('"'))
    version = next((line for line in watched.text("tool version").splitlines() if "Version" in line), "")
    return NsightProfile(
        version=version[:_TEXT],
        report=watched.documents["tool report"],
        details=watched.text("tool details"),
        table=table,
        kernels=_kernels(table),
    )


def _kernels(table: str) -> list[KernelMetrics]:
    launches: dict[str, KernelMetrics] = {}
    with contextlib.suppress(KeyError, TypeError, csv.Error):  # what was read until then is shown
        for row in itertools.islice(csv.DictReader(table.splitlines()), _ROWS):
            if row["ID"] not in launches and len(launches) == _KERNELS:
                break
            kernel = launches.setdefault(row["ID"], KernelMetrics(row["Kernel Name"][:_TEXT]))
            if row["Metric Name"]:
                cells = ((row.get(column) or "")[:_TEXT] for column in _COLUMNS)
                kernel.metrics.append(NsightMetric(*cells))
    return [*launches.values()]
