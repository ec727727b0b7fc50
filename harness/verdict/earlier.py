"""Documents of version 1, read as those of version 2. Pure, trusted: their hashes were checked as they are.

In version 1 a runner's own clock gave the times of cases that were not replayed: *sealed rounds*, whose claims the
judge's clock bounded by a tolerance. The scores stay as they were found; the claims that they rest on are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CLAIMED = {"claimed_latency", "claimed_ns", "null_walls_ns", "noise_ns", "sealed_ns", "tolerance_ns"}
_CLAIMED_OF_A_ROUND = {"claimed_ns", "claimed_span_ns", "held_up_ns", "sets"}


def upgraded(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of version 1 in the form of version 2; any other as it is."""
    if document.get("schema_version") != 1:
        return document
    timing = document.get("timing", "sealed")
    stage = document.get("stage")
    benchmarks = [_benchmark(case) for case in document.get("benchmarks", ())]
    changed = {"timing": timing, "ranked_timing": timing, "stage": "time" if stage == "seal" else stage}
    return {**document, **changed, "benchmarks": benchmarks, "schema_version": 2}


def _benchmark(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    kept = _rounds({key: value for key, value in benchmark.items() if key not in _CLAIMED})
    return {**kept, "baselines": [_baseline(baseline) for baseline in benchmark.get("baselines", ())]}


def _baseline(baseline: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in baseline.items() if key != "claimed_ns"}
    return {**_rounds(kept), "time_ns": baseline.get("claimed_ns")}


def _rounds(timed: dict[str, Any]) -> dict[str, Any]:
    if "rounds" not in timed:
        return timed
    return {**timed, "rounds": [_round(played) for played in timed["rounds"]]}


def _round(played: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in played.items() if key not in _CLAIMED_OF_A_ROUND}
