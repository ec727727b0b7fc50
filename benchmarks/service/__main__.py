"""Measures `kernelmark serve`: `python -m benchmarks.service`; `--only devices --only kills` for some of it.

The server is a process of its own on this machine, the load comes over the loopback, and the workers grade nothing.
Prints a table of the figures and their bars, and writes `benchmarks/results/service.json`; exits with 1 if a bar was
missed or a result is wrong. `--scale 0.02` is what CI runs, which looks at the results only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.service.clients import percentile
from benchmarks.service.kills import kills
from benchmarks.service.scenarios import ALL, Figures
from harness.device.cpu import cpu_name

RESULT = Path(__file__).parent.parent / "results" / "service.json"
SCENARIOS: dict[str, Callable[[Path, float], Figures]] = {**ALL, "kills": kills}


class Bar(NamedTuple):
    """What a figure has to reach."""

    scenario: str
    figure: str
    sign: str
    limit: float
    what: str

    def met(self, figure: float) -> bool:
        return figure >= self.limit if self.sign == "≥" else figure <= self.limit


BARS = (
    Bar("submissions", "submissions_a_second", "≥", 150, "durable submissions a second, 16 clients"),
    Bar("submissions", "submission_p99_ms", "≤", 100, "ms, p99 of a submission at 50 a second"),
    Bar("claims", "claim_p99_ms", "≤", 50, "ms, p99 of a claim, 10,000 queued of 300 owners"),
    Bar("claims", "claims_a_second", "≥", 60, "claims a second"),
    Bar("claims", "person_behind_a_batch_claim", "≤", 2, "which claim gets one person's job behind a batch of 10,000"),
    Bar("claims", "jain_of_50_claims", "≥", 0.95, "Jain's index over any 50 claims of ten equals"),
    Bar("devices", "busy_percent", "≥", 95, "% busy, eight devices of 400 ms, 1,000 jobs of 200 people"),
    Bar("memory", "first_page_s", "≤", 3, "s from start to the first page"),
    Bar("memory", "idle_mib", "≤", 150, "MiB with nothing to do"),
    Bar("memory", "idle_percent_of_a_core", "≤", 1, "% of a core with nothing to do"),
    Bar("memory", "mib_more", "≤", 20, "MiB more after 10,000 gradings"),
    Bar("memory", "on_the_board_s", "≤", 3, "s from a submission to its row on a board of 11,000 results"),
    Bar("kills", "restart_most_s", "≤", 5, "s until it serves again, the longest after 20 kills"),
)


def measure(names: Sequence[str], scale: float) -> dict[str, Figures]:
    """The figures of these scenarios, each in a project of its own."""
    figures = {}
    for name in names:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="service-") as folder:
            figures[name] = SCENARIOS[name](Path(folder), scale)
        figures[name]["seconds"] = time.monotonic() - began
        print(f"{name}: {figures[name]}", file=sys.stderr, flush=True)
    return figures


def table(figures: dict[str, Figures]) -> list[str]:
    """A line for each bar that was measured, and one for each result that is wrong."""
    lines = []
    for bar in BARS:
        if bar.scenario in figures:
            figure = figures[bar.scenario][bar.figure]
            lines.append(
                f"{'met' if bar.met(figure) else 'MISSED':6} {figure:10.2f}  {bar.sign} {bar.limit:<5g} {bar.what}"
            )
    return lines + [f"WRONG  {name}: {what}" for name, found in figures.items() for what in found["wrong"]]


def fsync_ms(times: int = 200) -> float:
    """The median time of an fsync after 4 KiB more, where the projects lie."""
    took = []
    with tempfile.TemporaryFile() as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return 1e3 * percentile(took, 0.5)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return round(value, 3) if isinstance(value, float) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=sorted(SCENARIOS), help="repeat for several; default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="of the load; bars are for 1")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    figures = measure(given.only or list(SCENARIOS), given.scale)
    lines = table(figures)
    document = {
        "what": "a server under load, with workers that grade nothing",
        "command": "python -m benchmarks.service " + " ".join(sys.argv[1:]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": cpu_name(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "fsync_ms": fsync_ms(),
        "load_average_before": load,
        "scale": given.scale,
        "figures": figures,
        "bars": lines,
    }
    given.out.write_text(json.dumps(rounded(document), indent=1, ensure_ascii=False) + "\n")
    print("\n".join(lines))
    return 0 if all(line.startswith("met") for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
