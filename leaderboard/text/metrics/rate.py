"""Metrics that divide what any kernel must do, by the problem's `[cost]`, by the time that a call took."""

from __future__ import annotations

from collections.abc import Callable

from harness.verdict import BenchmarkResult
from leaderboard.text.metrics.metric import Column, Metric


def rate_metric(
    name: str, title: str, *, least: Callable[[BenchmarkResult], int | None], what: str, key: str, unit: str
) -> Metric:
    """`least` gives how many of `what` a call needs at the least; `unit` is a thousand million of them a second."""

    def per_second(case: BenchmarkResult) -> float | None:
        count = least(case)
        return count / case.score.median_ns * 1e9 if count is not None and case.score.median_ns else None

    def text(case: BenchmarkResult) -> str:
        rate = per_second(case)
        return "" if rate is None else f"{rate / 1e9:.4g} {unit}"

    def sentence(case: BenchmarkResult) -> str:
        return f"{least(case):,} {what} at least, {rate}" if (rate := text(case)) else ""

    about = f"the {what} that any kernel must do or move, divided by the score"
    columns = (Column(key, name, float, about, per_second, text),)
    return Metric(name, name, title, in_tables=False, columns=columns, sentence=sentence)
