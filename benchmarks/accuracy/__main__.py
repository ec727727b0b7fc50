"""How accurate our score is, compared with other timing protocols, on one GPU.

    python -m benchmarks.accuracy --out leaderboard/publishing/site/accuracy/h100.json

Each workload is graded as a user would grade it, three times, in new sandboxes; then every other protocol times the
same kernel on the same shapes in this process, three times. The reference is what a score promises: CUPTI's time of
graphs of one call each, from the first start to the last end, launched one at a time on distinct inputs that are not
in L2. With --only-reference no other protocol is run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy.profilers import ncu, profile_graph
from benchmarks.accuracy.rivals import EVENTS, PROFILERS, Reading, Rival, measure
from benchmarks.accuracy.workloads import Workload, globaltimer_step_ns, workloads
from harness import stats
from harness.verdict import BenchmarkResult

REFERENCE = "cupti_graph_cold"
COLUMNS = ("score", *EVENTS, *PROFILERS, "ncu")
SHORTEST_US = 1.0  # the shortest spin
RELATIVE, ABSOLUTE_US = 0.02, 0.1  # the bias that we allow: the larger of the two


def grade_all(repeats: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Grade every workload `repeats` times; yields its name and the results."""
    from kernelmark import grade

    for _, same in groupby(workloads(), key=lambda workload: workload.source):
        members = list(same)
        problem = members[0].problem.model_copy(update={"benchmarks": tuple(w.case for w in members)})
        results: list[tuple[BenchmarkResult, ...]] = []
        seconds = 0.0
        for _ in range(repeats):
            started = time.perf_counter()
            verdict = grade(problem, members[0].source, device="cuda", baselines=[])
            seconds += time.perf_counter() - started
            assert verdict.outcome == "accepted", f"{problem.slug}: {verdict.message}"
            results.append(verdict.benchmarks)
        for i, workload in enumerate(members):
            yield workload.name, _ours([result[i] for result in results], seconds / len(members))


def _ours(results: list[BenchmarkResult], seconds: float) -> dict[str, Any]:
    return {
        "score": _as_row([result.score.median_ns / 1e3 for result in results], seconds),
        "mode": sorted({result.mode for result in results}),
        "doubts": sorted({doubt.code for result in results for doubt in result.doubts}),
    }


def _as_row(values: list[float], seconds: float) -> dict[str, float]:
    middle = stats.median(values)
    return {"us": middle, "spread": (max(values) - min(values)) / middle, "seconds": seconds}


def time_reference(repeats: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Take only the reference's times."""
    yield from _timed({REFERENCE: PROFILERS[REFERENCE]}, repeats)


def time_all(repeats: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Time every workload with every other protocol: first those without CUPTI, which slows later launches."""
    yield from _timed(EVENTS, repeats)
    yield from _timed(PROFILERS, repeats)


def _timed(rivals: dict[str, Rival], repeats: int) -> Iterator[tuple[str, dict[str, Any]]]:
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    for workload in workloads():
        sets = workload.sets(l2_bytes)
        call = workload.bind(sets)
        row: dict[str, Any] = {title: _reading(measure(rival, call, sets, repeats)) for title, rival in rivals.items()}
        if rivals is PROFILERS:
            seen = profile_graph(call, sets)
            row |= {"kernels_a_call": seen.events, "period_us": seen.period_us}
        yield workload.name, row
        del call
        torch.cuda.empty_cache()


def _reading(reading: Reading) -> dict[str, float]:
    return {"us": reading.median_us, "spread": reading.spread, "seconds": reading.seconds}


def profile_all(repeats: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Time every workload with Nsight Compute, in separate processes."""
    names = [workload.name for workload in workloads()]
    started = time.perf_counter()
    runs = [ncu(names) for _ in range(repeats)]
    seconds = (time.perf_counter() - started) / len(names)
    for name in names:
        medians = [stats.median(times[name]) for times, _ in runs if times is not None]
        yield name, {"ncu": _as_row(medians, seconds)} if medians else {"ncu_refused": runs[0][1]}


def judged(row: dict[str, Any], workload: Workload, shortest_us: float) -> dict[str, Any]:
    """The score's bias, and whether it is within what we allow.

    A spin's own start and end add to its known duration, so it is compared with the shortest spin, whose score is
    `shortest_us`.
    """
    bias_us = row["score"]["us"] - row[REFERENCE]["us"]
    allowed_us = max(RELATIVE * row[REFERENCE]["us"], ABSOLUTE_US)
    known: dict[str, Any] = {"known_us": workload.known_us}
    if workload.known_us is not None:
        known["bias_over_shortest_us"] = row["score"]["us"] - shortest_us - (workload.known_us - SHORTEST_US)
    return {
        **known,
        "bias_us": bias_us,
        "allowed_us": allowed_us,
        "met": abs(bias_us) <= allowed_us,
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """A Markdown table: bias against the reference and, in brackets, the spread of repetitions, both in percent."""
    lines = [
        "| kernel | CUPTI, µs | known, µs | " + " | ".join(COLUMNS) + " |",
        "|:---|---:|---:|" + "---:|" * len(COLUMNS),
    ]
    for name, row in rows.items():
        truth = row[REFERENCE]["us"]
        cells = [name, f"{truth:,.2f}", "" if row["known_us"] is None else f"{row['known_us']:,.0f}"]
        for column in COLUMNS:
            read = row.get(column)
            cells.append(f"{100 * (read['us'] / truth - 1):+.1f} ({100 * read['spread']:.1f})" if read else "–")
        lines.append("| " + " | ".join(cells) + " |")
    seconds = [sum(row[column]["seconds"] for row in rows.values() if column in row) for column in COLUMNS]
    lines.append("| seconds, all kernels | | | " + " | ".join(f"{second:.0f}" for second in seconds) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", type=Path, help="where to write the Markdown table")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only-reference", action="store_true")
    given = parser.parse_args()
    started = time.perf_counter()
    rows: dict[str, dict[str, Any]] = {workload.name: {} for workload in workloads()}
    steps = (grade_all, time_reference) if given.only_reference else (grade_all, time_all, profile_all)
    for step in steps:
        for name, figures in step(given.repeats):
            rows[name] |= figures
            print(f"{time.perf_counter() - started:6.1f} s  {step.__name__}  {name}", file=sys.stderr, flush=True)
        given.out.write_text(json.dumps(rows, indent=1) + "\n")  # keep the results so far, in case a later step fails
    shortest = next(each.name for each in workloads() if each.known_us == SHORTEST_US)
    for workload in workloads():
        rows[workload.name] |= judged(rows[workload.name], workload, rows[shortest]["score"]["us"])
    document = {
        "what": "our score beside other protocols, against CUPTI",
        "command": "python -m benchmarks.accuracy " + " ".join(sys.argv[1:]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "globaltimer_step_ns": globaltimer_step_ns(),
        "seconds": round(time.perf_counter() - started, 1),
        "rows": rows,
    }
    given.out.write_text(json.dumps(document, indent=1) + "\n")
    if given.table:
        given.table.write_text(table(rows))
    print(table(rows))
    for name, row in rows.items():
        mode = "/".join(row["mode"])
        known = f"  over the shortest {row['bias_over_shortest_us']:+.3f} µs" if row["known_us"] else ""
        verdict = "within" if row["met"] else "NOT within"
        print(
            f"{name:<26} bias {row['bias_us']:+.3f} µs, {verdict} {row['allowed_us']:.3f} µs  {mode}  "
            f"{','.join(row['doubts'])}{known}"
        )


if __name__ == "__main__":
    main()
