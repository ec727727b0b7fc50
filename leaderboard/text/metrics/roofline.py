"""How close a case came to what the device can do, and whether memory or arithmetic is what limits it there."""

from __future__ import annotations

from harness.verdict import BenchmarkResult
from leaderboard.text.metrics.metric import Column, Metric
from leaderboard.text.units import percent


def _share(case: BenchmarkResult) -> float | None:
    return case.roofline.share if case.roofline else None


def _percent(case: BenchmarkResult) -> str:
    return percent(case.roofline.share) if case.roofline else ""


def _limit(case: BenchmarkResult) -> str:
    return case.roofline.limit if case.roofline else ""


def _sentence(case: BenchmarkResult) -> str:
    roof = case.roofline
    return f"{100 * roof.share:.1f} % of what {roof.limit} allows on this device" if roof else ""


METRIC = Metric(
    name="roofline",
    heading="of roofline",
    title="Share of what the device can do at most",
    in_tables=True,
    columns=(
        Column("roofline_share", "roofline", float, "of the roofline of a calibrated device", _share, _percent),
        Column("roofline_limit", "limit", str, "memory or arithmetic", lambda case: _limit(case) or None, _limit),
    ),
    sentence=_sentence,
)
