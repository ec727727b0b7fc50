"""How fast a case moved the bytes that any kernel for it must move: those that the problem's `[cost]` states."""

from __future__ import annotations

from harness.verdict import BenchmarkResult
from leaderboard.text.metrics.metric import Column, Metric


def _bytes_per_s(case: BenchmarkResult) -> float | None:
    if case.minimum_bytes is None or not case.score.median_ns:
        return None
    return case.minimum_bytes / case.score.median_ns * 1e9


def _text(case: BenchmarkResult) -> str:
    rate = _bytes_per_s(case)
    return "" if rate is None else f"{rate / 1e9:.4g} GB/s"


def _sentence(case: BenchmarkResult) -> str:
    text = _text(case)
    return f"{case.minimum_bytes:,} bytes at least, {text}" if text else ""


METRIC = Metric(
    name="traffic",
    heading="traffic",
    title="Bytes that any kernel must move, in a second",
    in_tables=False,
    columns=(
        Column(
            "bytes_per_s", "traffic", float, "the bytes any kernel must move, divided by the score", _bytes_per_s, _text
        ),
    ),
    sentence=_sentence,
)
