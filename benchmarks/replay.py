"""Tests what launchers can replay, and how well their times repeat: on a GPU, without whole gradings.

    python -m benchmarks.replay --sandbox docker --out benchmarks/results/replay.json [NAME...]

For every kernel of `reference/` and of the honest suite that runs on a GPU (or those whose name contains a NAME), and
for each of its benchmark cases, the runner records the call and ends; then launchers, one after the other, make it on
fresh inputs, with every output checked. Per case it reports the medians of CUPTI's, the events' and the host's times in
each launcher, how far the launchers' medians are apart, and the seconds of each step; or why the call is not replayed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.outcomes import Kernel, kernels
from benchmarks.scratch import report
from harness import sandbox, stats
from harness.arena import free_deferred
from harness.device import DEVICES
from harness.errors import HarnessError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import BuildRequest, Session, SubmissionFault
from harness.judge.timing import NotReplayed
from harness.judge.timing.replayed.benchmark import Player
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, RecordedCall, record, scratch_for
from harness.problem import Problem, load
from harness.problem.reference import Reference
from harness.submission import Submission
from harness.wire import checks
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


def recordings(
    submission: Submission, problem: Problem, cases: list[GradedCase], provider: sandbox.Provider
) -> tuple[dict[str, RecordedCall | str], dict[str, float]]:
    """Each case's recording, or why there is none; and the seconds of each step."""
    by_case: dict[str, RecordedCall | str] = {}
    begun = time.perf_counter()
    with Session.start(provider, "cuda", problem.limits, modes=["records"]) as session:
        session.handshake()
        seconds = {"runner": time.perf_counter() - begun}
        begun = time.perf_counter()
        request = BuildRequest.of(problem, submission, [each.resolved for each in cases], "cuda")
        session.build(request, problem.limits.build_s)
        for case in cases:
            try:
                by_case[case.name] = record(session, case)
            except NotReplayed as why:
                by_case[case.name] = str(why)
        seconds["recording"] = time.perf_counter() - begun
    return by_case, seconds


def replayed(
    recorded: RecordedCall, problem: Problem, case: GradedCase, provider: sandbox.Provider, calls: int
) -> dict[str, Any]:
    """One launcher's times of a case."""
    begun = time.perf_counter()
    fresh = FreshInputs(case)
    try:
        session = Session.start(provider, "cuda", problem.limits, role="launcher")
        with session, scratch_for([recorded], "cuda") as scratch:
            player = Player(LauncherSession(session, "cuda"), recorded, case, scratch)
            player.warm_up(fresh)
            begun_calls = time.perf_counter()
            for _ in range(calls):
                fresh.next()
                player.play(fresh)
                fresh.keep()
            fresh.check()
            ended = time.perf_counter()
            made, loaded = player.made, player.loaded
    finally:
        fresh.close()
        free_deferred("cuda")
    estimate = stats.estimate_median([each.device_ns for each in made])
    return {
        "device_ns": estimate.median,
        "interval_ns": [estimate.low, estimate.high],
        "event_ns": stats.median([each.event_ns for each in made]),
        "span_ns": stats.median([each.span_ns for each in made]),
        "event_extra_ns": loaded.event_extra_ns,
        "span_extra_ns": loaded.span_extra_ns,
        "registers": [function.registers for function in loaded.functions],
        "start_s": round(begun_calls - begun, 3),
        "call_s": round((ended - begun_calls) / calls, 5),
    }


def rows(kernel: Kernel, provider: sandbox.Provider, launchers: int, calls: int) -> Iterator[dict[str, Any]]:
    problem = load(kernel.problem)
    of = partial(GradedCase, problem, Reference.load(problem), "cuda")
    cases = [of(problem.resolve(case)) for case in problem.benchmarks if "cuda" in case.devices]
    try:
        by_case, seconds = recordings(Submission.read(kernel.file, "bench"), problem, cases, provider)
    except (SubmissionFault, HarnessError) as error:
        yield {"kernel": kernel.name, "fault": str(error)[:300], "traceback": getattr(error, "traceback", "")}
        return
    for case in cases:
        row: dict[str, Any] = {"kernel": kernel.name, "case": case.name, "seconds": seconds}
        recorded = by_case[case.name]
        if isinstance(recorded, str):
            yield row | {"not_replayed": recorded}
            continue
        made = recorded.packed.recording
        row |= {"nodes": len(made.nodes), "images": len(made.images), "file_bytes": len(recorded.file)}
        row |= {"scratch_bytes": made.scratch_bytes}
        try:
            launched = [replayed(recorded, problem, case, provider, calls) for _ in range(launchers)]
        except (SubmissionFault, HarnessError, checks.WireError) as error:
            yield row | {"fault": str(error)[:300], "traceback": getattr(error, "traceback", "")}
            continue
        medians = [each["device_ns"] for each in launched]
        yield row | {
            "launchers": launched,
            "apart": (max(medians) - min(medians)) / min(medians) if min(medians) else None,
        }


def line(row: dict[str, Any]) -> str:
    name = f"{row['kernel']:34} {row.get('case', ''):22}"
    if why := row.get("not_replayed") or row.get("fault"):
        return f"{name} {'NOT' if 'not_replayed' in row else 'FAULT'}: {why}"
    first = row["launchers"][0]
    times = " ".join(f"{first[clock] / 1e3:9.2f}" for clock in ("device_ns", "event_ns", "span_ns"))
    apart = f"{100 * row['apart']:5.2f} %" if row["apart"] is not None else ""
    took = f"start {first['start_s']} s, call {1e3 * first['call_s']:.1f} ms"
    return f"{name} {times} us {apart} nodes {row['nodes']:4} {took}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sandbox", choices=("docker", "bwrap", "process"), default="docker")
    parser.add_argument("--launchers", type=int, default=3)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--budget-s", type=float, default=400.0, help="begin no kernel after this")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "replay.json")
    given = parser.parse_args()
    provider = sandbox.choose(given.sandbox, providers(Settings.load()))
    begun, results = time.monotonic(), list[dict[str, Any]]()
    for kernel in kernels("cuda"):
        chosen = kernel.kind != "sample" and (not given.names or any(name in kernel.name for name in given.names))
        if chosen and time.monotonic() - begun < given.budget_s:
            try:
                for row in rows(kernel, provider, given.launchers, given.calls):
                    results.append(row)
                    print(line(row), file=sys.stderr, flush=True)
            except Exception:  # noqa: BLE001  # one kernel costs no other its figures
                results.append({"kernel": kernel.name, "fault": traceback.format_exc()[-1000:]})
            given.out.with_suffix(".rows").write_text("\n".join(map(json.dumps, results)) + "\n")
    replayed_rows = [row for row in results if "launchers" in row]
    told = {"sandbox": given.sandbox, "calls": given.calls, "cases": len(results), "replayed": len(replayed_rows)}
    report("replay", "calls made by a launcher", given.out, told | DEVICES["cuda"].facts().known() | {"rows": results})
    print("\n".join(map(line, results)))
    return 0 if replayed_rows else 1


if __name__ == "__main__":
    sys.exit(main())
