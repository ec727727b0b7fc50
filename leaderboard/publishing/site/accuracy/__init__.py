"""How close the scores of replayed calls come to CUPTI's times, measured by `benchmarks.accuracy`: one file per GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@cache
def tables() -> dict[str, str]:
    """For each GPU, by name, a Markdown table with one row per kernel and times in µs."""
    measured = (json.loads(file.read_text(encoding="utf-8")) for file in sorted(_HERE.glob("*.json")))
    return {device["device"]: "\n".join(_lines(device["rows"])) + "\n" for device in measured}


def _lines(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| kernel | CUPTI, µs | score − CUPTI, µs | |"
    yield "|:---|---:|---:|---:|"
    for name, row in rows.items():
        reference, bias = row["cupti_graph_cold"]["us"], row["bias_us"]
        beyond = "" if row["met"] else "**"
        yield f"| {name} | {reference:,.2f} | {beyond}{bias:+.2f}{beyond} | {100 * bias / reference:+.1f} % |"
