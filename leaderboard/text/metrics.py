"""The metrics of a benchmark case: numbers that follow from how long a call took. Pure, trusted.

Terminal, Markdown, site and exports show what `METRICS` lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.verdict import BenchmarkResult
from leaderboard.text.units import duration, percent, size

MetricValue = float | str


class Column(NamedTuple):
    """One value of a metric: a column of the exported tables, and of the site's tables."""

    key: str
    """The column's name in exports; readers depend on it."""
    heading: str
    type: type[float] | type[str]
    about: str
    value: Callable[[BenchmarkResult], MetricValue | None]
    """None where the case does not have it."""
    text: Callable[[BenchmarkResult], str]
    """The value for people; empty where the case does not have it."""

    @property
    def is_number(self) -> bool:
        """Whether a table flushes it right and sorts by it."""
        return self.type is float


class CaseMetric(NamedTuple):
    """A fact about a case that is shown besides its time."""

    name: str
    heading: str
    """Over a column that holds all of its values."""
    title: str
    """Over a table that has nothing else."""
    in_tables: bool
    """Whether tables of all cases have a column for it; the others are shown with a single case, and exported."""
    columns: tuple[Column, ...]
    sentence: Callable[[BenchmarkResult], str]
    """Everything about it, where one case is shown in full; empty where the case does not have it."""

    def cell(self, case: BenchmarkResult) -> str:
        """All of its values as one cell."""
        return " ".join(text for column in self.columns if (text := column.text(case)))


def _share(case: BenchmarkResult) -> float | None:
    return case.roofline.share if case.roofline else None


def _limit(case: BenchmarkResult) -> str:
    return case.roofline.limit if case.roofline else ""


def _of_roofline(case: BenchmarkResult) -> str:
    roof = case.roofline
    return f"{100 * roof.share:.1f} % of what {roof.limit} allows on this device" if roof else ""


def _rate_metric(
    name: str, title: str, least: Callable[[BenchmarkResult], int | None], what: str, key: str, unit: str
) -> CaseMetric:
    """A metric of what any kernel must do, by the problem's `[cost]`, divided by the time that a call took.

    `least` gives how many of `what` a call needs at the least; `unit` is a thousand million of them a second.
    """

    def per_second(case: BenchmarkResult) -> float | None:
        count = least(case)
        return count / case.score.median_ns * 1e9 if count is not None and case.score.median_ns else None

    def text(case: BenchmarkResult) -> str:
        rate = per_second(case)
        return "" if rate is None else f"{rate / 1e9:{'.4g' if rate < 9.9995e12 else ',.0f'}} {unit}"

    def sentence(case: BenchmarkResult) -> str:
        return f"{least(case):,} {what} at least, {rate}" if (rate := text(case)) else ""

    about = f"the {what} that any kernel must do or move, divided by the score"
    return CaseMetric(name, name, title, False, (Column(key, name, float, about, per_second, text),), sentence)


def _scratch_bytes(case: BenchmarkResult) -> int | None:
    return case.scratch_bytes if case.mode == "replayed" else None


def peak_bytes(case: BenchmarkResult) -> int | None:
    """The most device memory that a call had allocated at a time."""
    return case.peak_bytes if case.mode == "replayed" else None


def _peak(case: BenchmarkResult) -> str:
    peak = peak_bytes(case)
    return "" if peak is None else f"{peak:,} bytes of device memory, the most that a call allocates at a time"


def _host_ns(case: BenchmarkResult) -> int | None:
    return case.host_ns if case.mode == "replayed" else None


def launching(case: BenchmarkResult) -> str:
    """The host's time to launch a call beside the GPU's; empty where nothing was recorded."""
    host_ns, gpu_ns = _host_ns(case), case.score.median_ns
    if host_ns is None:
        return ""
    bound = ": without replay, launches would bound it" if host_ns > gpu_ns else ""
    return f"the host takes {duration(host_ns)} to launch what the GPU does in {duration(gpu_ns)}{bound}"


def _scratch(case: BenchmarkResult, unit: str) -> str:
    held = _scratch_bytes(case)
    return "" if held is None else f"{held:,} {unit}"


_ROOFLINE = (
    Column(
        "roofline_share", "roofline", float, "of the roofline of a calibrated device", _share,
        lambda case: percent(case.roofline.share) if case.roofline else "",
    ),
    Column("roofline_limit", "limit", str, "memory or arithmetic", lambda case: _limit(case) or None, _limit),
)  # fmt: skip
_MEMORY = Column(
    "scratch_bytes", "memory", float, "device memory that the launcher gave each call besides inputs and outputs",
    _scratch_bytes, lambda case: _scratch(case, "B"),
)  # fmt: skip
_PEAK = Column(
    "peak_bytes", "peak memory", float, "the most device memory that a call had allocated at a time",
    peak_bytes, lambda case: "" if (peak := peak_bytes(case)) is None else size(peak),
)  # fmt: skip
_HOST = Column(
    "host_ns", "host time", float, "how long the host took to launch a call, as the submission's process said",
    _host_ns, lambda case: "" if (host_ns := _host_ns(case)) is None else duration(host_ns),
)  # fmt: skip
METRICS: tuple[CaseMetric, ...] = (
    CaseMetric("roofline", "of roofline", "Share of what the device can do at most", True, _ROOFLINE, _of_roofline),
    _rate_metric(
        "traffic", "Bytes a second that any kernel must move", lambda case: case.minimum_bytes, "bytes", "bytes_per_s",
        "GB/s",
    ),
    _rate_metric(
        "work", "Operations a second that any kernel must do", lambda case: case.minimum_flops, "flops", "flops_per_s",
        "GFLOP/s",
    ),
    CaseMetric(
        "memory", "memory", "Device memory besides inputs and outputs", False, (_MEMORY,),
        lambda case: _scratch(case, "bytes of device memory besides inputs and outputs"),
    ),
    CaseMetric("peak memory", "peak memory", "The most device memory that a call allocates", False, (_PEAK,), _peak),
    CaseMetric("host time", "host time", "The host's time to launch a call", False, (_HOST,), launching),
)  # fmt: skip
