"""Converts documents of version 1 to version 2. Pure, trusted; hashes are checked on the original documents.

In version 1 a runner's own clock gave the times of cases that were not replayed: *sealed rounds*, whose claims the
judge's clock verified up to a tolerance. The scores are kept; the claims behind them are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

_CLAIMS = {"claimed_latency", "claimed_ns", "null_walls_ns", "noise_ns", "sealed_ns", "tolerance_ns"}
_ROUND_CLAIMS = {"claimed_ns", "claimed_span_ns", "held_up_ns", "sets"}


def upgraded(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a document of version 1 to version 2; other documents are returned unchanged."""
    if document.get("schema_version") != 1:
        return document
    timing, stage = document.get("timing", "sealed"), document.get("stage")
    changed = {"timing": timing, "ranked_timing": timing, "stage": "time" if stage == "seal" else stage}
    benchmarks = [
        {
            **_without(case, _CLAIMS),
            "baselines": [
                {**_without(baseline, {"claimed_ns"}), "time_ns": baseline.get("claimed_ns")}
                for baseline in case.get("baselines", ())
            ],
        }
        for case in document.get("benchmarks", ())
    ]
    return {**document, **changed, "benchmarks": benchmarks, "schema_version": 2}


def _without(timed: Mapping[str, Any], claims: Set[str]) -> dict[str, Any]:
    """A timed case or baseline without the claims, and its rounds without theirs."""
    kept = {key: value for key, value in timed.items() if key not in claims}
    if "rounds" in kept:
        kept["rounds"] = [_without(played, _ROUND_CLAIMS) for played in kept["rounds"]]
    return kept
