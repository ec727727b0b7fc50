"""How well times repeat: ten gradings of one file, a file against a copy of itself, and against one made 1 % slower.

    python -m benchmarks.repeatability --out benchmarks/results/repeatability_h200.json

Sandbox, image and binds come from kernelmark.toml or the environment. The gradings are whole ones, each in sandboxes of
its own, with PyTorch's eager kernel in alternation. The pairs are single benchmark cases measured as a grading measures
them, at the default budget; a pair of sandboxes serves `PAIRS_A_SANDBOX` of them. "Called different" means that the
interval of the paired ratio does not contain 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import stats
from harness.problem import Problem, ResolvedCase, load
from harness.submission import Submission
from harness.verdict import SealedBenchmark, Verdict

ROOT = Path(__file__).resolve().parent.parent
PAIRS_A_SANDBOX = 10
EXTRA_ROWS = 55  # 41 are 1 % of 4096, and take 0.75 % of the time: the first rows lie in L2 again

# What is graded ten times: problem, kernel, benchmark cases.
GRADED: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("vector_add", "triton.py", [{"n": 2048**2}, {"n": 16384**2}]),
    ("softmax", "triton.py", [{"rows": 4096, "cols": 4096}]),
    ("matmul", "triton.py", [{"m": s, "n": s, "k": s, "dtype": "bfloat16"} for s in (1024, 8192)]),
]
# What is paired with itself, and with a slower copy.
PAIRED: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {"rows": 4096, "cols": 4096}),
    ("gelu", {"n": 2048**2}),
]


def with_benchmarks(slug: str, parameters: list[dict[str, Any]]) -> Problem:
    """A problem of this repository with benchmark cases of our own, and the smaller half of its tests."""
    problem = load(ROOT / "problems" / slug)
    first = next(case for case in problem.benchmarks if "cuda" in case.devices)
    cases = [first.model_copy(update={"name": "×".join(map(str, p.values())), "params": p}) for p in parameters]
    tests = tuple(case for case in problem.tests if "cpu" in case.devices and "cuda" in case.devices)
    return problem.model_copy(update={"benchmarks": tuple(cases), "tests": tests})


def slower_softmax() -> Submission:
    """The Triton softmax with 1 % more rows to do: the first ones again."""
    source = (ROOT / "reference" / "softmax" / "triton.py").read_text()
    for old, new in (
        ("tl.program_id(0).to(tl.int64)", f"(tl.program_id(0) % (tl.num_programs(0) - {EXTRA_ROWS})).to(tl.int64)"),
        ("kernel[(rows,)]", f"kernel[(rows + {EXTRA_ROWS},)]"),
    ):
        assert old in source
        source = source.replace(old, new)
    return Submission.of(source, "py", author="slower")


def grade_repeatedly(times: int) -> Iterator[dict[str, Any]]:
    """Grade each file `times` times; yields a row a case."""
    from kernelmark import grade

    for slug, kernel, parameters in GRADED:
        problem = with_benchmarks(slug, parameters)
        verdicts: list[Verdict] = []
        seconds = []
        for _ in range(times):
            started = time.perf_counter()
            verdicts.append(grade(problem, ROOT / "reference" / slug / kernel, device="cuda"))
            seconds.append(round(time.perf_counter() - started, 2))
        for i, case in enumerate(problem.benchmarks):
            results = [v.benchmarks[i] for v in verdicts if v.benchmarks]
            yield _graded_row(f"{slug} {case.name}", results, [v.message for v in verdicts if v.message], seconds)


def _graded_row(name: str, results: list[SealedBenchmark], failures: list[str], seconds: list[float]) -> dict[str, Any]:
    scores = [result.score.median_ns for result in results]
    ratios = [paired.speedup.median for result in results for paired in result.baselines]
    return {
        "case": name,
        "gradings": len(scores),
        "failures": failures,
        "scores_ns": scores,
        "spread_percent": _spread_percent([float(score) for score in scores]),
        "over_eager": [round(ratio, 5) for ratio in ratios],
        "over_eager_spread_percent": _spread_percent(ratios),
        "sealed_ns": [result.sealed_ns for result in results],
        "rounds": [len(result.rounds) for result in results],
        "doubts": sorted({doubt.code for result in results for doubt in result.doubts}),
        "sm_mhz": _range([r.telemetry.sm_mhz for b in results for r in b.rounds if r.telemetry]),
        "power_w": _range([(r.telemetry.power_mw or 0) // 1000 for b in results for r in b.rounds if r.telemetry]),
        "grading_s": seconds,
    }


def pairs(slug: str, parameters: dict[str, Any], candidate: Submission, count: int) -> dict[str, Any]:
    """Measure a candidate against the Triton kernel of a problem `count` times."""
    problem = with_benchmarks(slug, [parameters])
    case = problem.resolve(problem.benchmarks[0])
    baseline = Submission.read(ROOT / "reference" / slug / "triton.py", "baseline")
    results: list[SealedBenchmark] = []
    started = time.perf_counter()
    while len(results) < count:
        results += _measure(problem, case, candidate, baseline, min(PAIRS_A_SANDBOX, count - len(results)))
    ratios = [result.baselines[0].speedup for result in results]
    return {
        "case": f"{slug} {case.name}",
        "pairs": len(ratios),
        "called_faster": sum(ratio.low > 1 for ratio in ratios),
        "called_slower": sum(ratio.high < 1 for ratio in ratios),
        "median_ratio": round(stats.median([ratio.median for ratio in ratios]), 5),
        "ratios": [[round(v, 5) for v in (ratio.low, ratio.median, ratio.high)] for ratio in ratios],
        "half_width_percent": round(100 * stats.median([(r.high - r.low) / 2 for r in ratios]), 3),
        "score_median_ns": round(stats.median([result.score.median_ns for result in results])),
        "rounds": sorted({len(result.rounds) for result in results}),
        "seconds_a_pair": round((time.perf_counter() - started) / max(1, len(ratios)), 2),
    }


def _measure(
    problem: Problem, case: ResolvedCase, candidate: Submission, baseline: Submission, count: int
) -> Iterator[SealedBenchmark]:
    """Measure `count` pairs in one pair of sandboxes, as `harness.judge.grading` measures a case."""
    from harness import wire
    from harness.judge.baseline import Baseline
    from harness.judge.environment import architecture
    from harness.judge.overhead import measure_overhead
    from harness.judge.rounds import Rounds
    from harness.judge.sealing import Sealing
    from harness.judge.session import Session
    from harness.judge.telemetry import Sensors
    from harness.judge.time_limit import TimeLimit
    from harness.judge.timing import claimed_latency, plan_for
    from harness.judge.truth import Truth
    from harness.problem.reference import Reference
    from harness.sandbox import choose
    from kernelmark.api import providers
    from kernelmark.settings import Settings

    settings = Settings.load()
    provider = choose(settings.sandbox, providers(settings))
    truth, sensors = Truth(Reference.load(problem), case), Sensors("cuda")
    symbol = (problem.entry,)
    with (
        Session(provider, "cuda", problem.limits) as session,
        Session(provider, "cuda", problem.limits) as other,
    ):
        plan = plan_for("cuda")
        session.handshake()
        overhead = measure_overhead(session, problem, [case], "cuda", plan)
        build = wire.Build(language=candidate.language, symbols=symbol, architecture=architecture("cuda"))
        session.hand_over(build, candidate.source, problem.limits.build_s)
        beside = Baseline(baseline, other, problem, "cuda")
        beside.build(build)
        for _ in range(count):
            limit = TimeLimit(problem.limits.time_s)
            latency = claimed_latency(session, problem, case, "cuda", plan, limit)
            paired = beside.pair(case, truth, plan, sensors)
            assert paired is not None, beside.fault
            rounds = Rounds(session, problem, truth, case, "cuda", sensors, limit)
            yield Sealing(rounds, case, "cuda", plan, overhead, [paired]).run(latency)


def _spread_percent(values: list[float]) -> float | None:
    return round(100 * (max(values) - min(values)) / stats.median(values), 3) if values else None


def _range(values: list[int | None]) -> list[int] | None:
    known = [value for value in values if value]
    return [min(known), max(known)] if known else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gradings", type=int, default=10, help="of each file")
    parser.add_argument("--same", type=int, default=100, help="pairs of a kernel with itself, in all")
    parser.add_argument("--slower", type=int, default=100, help="pairs of a kernel with a slower copy")
    given = parser.parse_args()
    document: dict[str, Any] = {
        "what": "repeated gradings, a kernel against itself, and against a copy made 1 % slower",
        "command": "python -m benchmarks.repeatability " + " ".join(sys.argv[1:]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    document["gradings"] = list(grade_repeatedly(given.gradings)) if given.gradings else []
    same = [Submission.read(ROOT / "reference" / slug / "triton.py", "same") for slug, _ in PAIRED]
    each = given.same // len(PAIRED)
    document["same"] = [pairs(slug, p, copy, each) for (slug, p), copy in zip(PAIRED, same, strict=True) if each]
    document["slower"] = [pairs(*PAIRED[0], slower_softmax(), given.slower)] if given.slower else []
    document["environment"] = _environment()
    given.out.write_text(json.dumps(document, indent=1) + "\n")
    show(document)


def _environment() -> dict[str, Any]:
    import torch
    import triton

    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}


def show(document: dict[str, Any]) -> None:
    """Print a line a case."""
    for row in document["gradings"]:
        ratio, score = row["over_eager_spread_percent"], stats.median(row["scores_ns"] or [0])
        print(
            f"{row['case']:<34} {row['gradings']:3} gradings  score {score:>12,.0f} ns  "
            f"spread {row['spread_percent']} %  over eager {stats.median(row['over_eager'] or [0]):.4f} ± {ratio} %  "
            f"SM {row['sm_mhz']} MHz {row['power_w']} W  {min(row['grading_s'])}–{max(row['grading_s'])} s  "
            f"{','.join(row['doubts'])} {row['failures'][:1]}"
        )
    for kind in ("same", "slower"):
        for row in document[kind]:
            print(
                f"{kind:<7} {row['case']:<28} {row['pairs']:3} pairs  faster {row['called_faster']}  slower "
                f"{row['called_slower']}  ratio {row['median_ratio']}  half width {row['half_width_percent']} %  "
                f"{row['score_median_ns']:,} ns  rounds {row['rounds']}  {row['seconds_a_pair']} s a pair"
            )


if __name__ == "__main__":
    main()
