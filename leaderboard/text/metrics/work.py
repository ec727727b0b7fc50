"""How fast a case did the arithmetic that any kernel for it must do: what the problem's `[cost]` states."""

from __future__ import annotations

from harness.verdict import BenchmarkResult
from leaderboard.text.metrics.metric import Column, Metric


def _flops_per_s(case: BenchmarkResult) -> float | None:
    if case.minimum_flops is None or not case.score.median_ns:
        return None
    return case.minimum_flops / case.score.median_ns * 1e9


def _text(case: BenchmarkResult) -> str:
    rate = _flops_per_s(case)
    return "" if rate is None else f"{rate / 1e9:.4g} GFLOP/s"


def _sentence(case: BenchmarkResult) -> str:
    text = _text(case)
    return f"{case.minimum_flops:,} flops at least, {text}" if text else ""


METRIC = Metric(
    name="work",
    heading="work",
    title="Operations that any kernel must do, in a second",
    in_tables=False,
    columns=(
        Column("flops_per_s", "work", float, "the flops any kernel must do, divided by the score", _flops_per_s, _text),
    ),
    sentence=_sentence,
)
