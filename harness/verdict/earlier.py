"""Documents of version 1, read as those of version 2. Pure, trusted: their hashes were checked as they are.

In version 1 a runner's own clock gave the times of cases that were not replayed: *sealed rounds*, whose claims the
judge's clock bounded by a tolerance. The scores stay as they were found; the claims that they rest on are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

_CLAIMED = {"claimed_latency", "claimed_ns", "null_walls_ns", "noise_ns", "sealed_ns", "tolerance_ns"}
_CLAIMED_OF_A_ROUND = {"claimed_ns", "claimed_span_ns", "held_up_ns", "sets"}


def upgraded(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of version 1 in the form of version 2; any other as it is."""
    if document.get("schema_version") != 1:
        return document
    timing, stage = document.get("timing", "sealed"), document.get("stage")
    changed = {"timing": timing, "ranked_timing": timing, "stage": "time" if stage == "seal" else stage}
    benchmarks = [
        {
            **_unclaimed(case, _CLAIMED),
            "baselines": [
                {**_unclaimed(baseline, {"claimed_ns"}), "time_ns": baseline.get("claimed_ns")}
                for baseline in case.get("baselines", ())
            ],
        }
        for case in document.get("benchmarks", ())
    ]
    return {**document, **changed, "benchmarks": benchmarks, "schema_version": 2}


def _unclaimed(timed: Mapping[str, Any], claims: Set[str]) -> dict[str, Any]:
    """What was timed, without claims, and its rounds without theirs."""
    kept = {key: value for key, value in timed.items() if key not in claims}
    if "rounds" in kept:
        kept["rounds"] = [_unclaimed(played, _CLAIMED_OF_A_ROUND) for played in kept["rounds"]]
    return kept
