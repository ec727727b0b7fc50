"""How much device memory a call may use besides its inputs and outputs."""

from __future__ import annotations

from harness.verdict import BenchmarkResult
from leaderboard.text.metrics.metric import Column, Metric


def _bytes(case: BenchmarkResult) -> int | None:
    return case.scratch_bytes if case.mode == "replayed" else None


def _text(case: BenchmarkResult) -> str:
    held = _bytes(case)
    return "" if held is None else f"{held:,} B"


def _sentence(case: BenchmarkResult) -> str:
    held = _bytes(case)
    return "" if held is None else f"{held:,} bytes of device memory besides inputs and outputs"


METRIC = Metric(
    name="memory",
    heading="memory",
    title="Device memory besides inputs and outputs",
    in_tables=False,
    columns=(
        Column(
            "scratch_bytes",
            "memory",
            float,
            "device memory that the launcher gave each call besides inputs and outputs",
            _bytes,
            _text,
        ),
    ),
    sentence=_sentence,
)
