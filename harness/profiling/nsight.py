"""Nsight Compute on one call: its report, its details as text and CSV, and what they say of each kernel. Trusted.

It runs in the submission's sandbox, which could forge all of it: what is read is bounded and printable.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
from dataclasses import dataclass, field

from harness.audit.tools import NO_COUNTERS, PROFILED_CALL, no_counters, program
from harness.audit.watch import Watched, watch
from harness.errors import SandboxError
from harness.judge.correctness.graded_case import GradedCase
from harness.sandbox import Provider, Watcher
from harness.submission import Submission

REPORT = "report.ncu-rep"
SECTIONS = (
    *("SpeedOfLight", "Occupancy", "MemoryWorkloadAnalysis", "WarpStateStats", "SchedulerStats", "LaunchStats"),
    *("ComputeWorkloadAnalysis", "SourceCounters"),
)
_ROWS, _KERNELS, _TEXT = 50_000, 64, 200
MEMORY, ARITHMETIC, OCCUPANCY = "Memory Throughput", "Compute (SM) Throughput", "Achieved Occupancy"
DURATION = "Duration"
_COLUMNS = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
_UNITS = {"us": "µs"}
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
    """What was counted during one launch."""

    name: str
    metrics: list[NsightMetric] = field(default_factory=list)

    def percent(self, name: str) -> float | None:
        """A metric in percent; None if it is missing, or NaN, as version 2026.2 prints in containers."""
        for metric in self.metrics:
            if metric.name == name and metric.unit == "%" and not metric.breakdown:
                try:
                    value = float(metric.value.replace(",", ""))
                except ValueError:
                    return None
                return value if math.isfinite(value) else None
        return None

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


@dataclass
class NsightProfile:
    """The report and what was read of it."""

    version: str
    report: bytes
    details: str
    table: str
    """CSV, a line a metric."""
    kernels: list[KernelMetrics]
    """In the order of their launches."""


def watcher() -> Watcher:
    """Nsight Compute, around one call.

    Raises:
        UsageError: it is not installed.
    """
    ncu = program("ncu", "nsight-compute")
    sections = [word for name in SECTIONS for word in ("--section", name)]
    command = (str(ncu), "--export", REPORT, "--force-overwrite", *sections, *PROFILED_CALL)
    shown = (str(ncu), "--import", REPORT, "--page", "details", "--print-details", "all")
    views = {"tool details": shown, "tool table": (*shown, "--csv"), "tool version": (str(ncu), "--version")}
    return Watcher(command, ncu.parent, REPORT, views)


class NothingMeasured(Exception):
    """Why there is no report, in one line."""


def profile(submission: Submission, case: GradedCase, provider: Provider) -> NsightProfile:
    """Measure one call of this case, in a sandbox of its own.

    Raises:
        NothingMeasured: the tool, or the submission, did not get that far.
        UsageError: Nsight Compute is not installed.
        HarnessError: the sandbox or the device failed.
    """
    try:
        watched = watch(case.problem, submission, watcher(), [case.resolved], provider=provider, device=case.device)
    except SandboxError as error:  # the tool does not let the runner start
        raise NothingMeasured(str(error)) from None
    return read(watched)


def read(watched: Watched) -> NsightProfile:
    """What was measured.

    Raises:
        NothingMeasured: nothing was.
    """
    printed = watched.text("tool output")
    if NO_COUNTERS in printed or "tool report" not in watched.documents:
        raise NothingMeasured("; ".join(filter(None, (watched.fault, no_counters(printed)))))
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
