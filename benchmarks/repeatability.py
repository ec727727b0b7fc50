"""Tests whether equal kernels are called equal, and a 1 % slower one slower: pairs of a file and a copy, on a GPU.

    python -m benchmarks.repeatability --out benchmarks/results/repeatability_h100.json

Sandbox, image and binds come from kernelmark.toml or the environment. A pair is one benchmark case, measured as in a
grading at the default budget, with the second kernel as the first one's baseline; two launchers serve
`PAIRS_A_LAUNCHER` pairs. "Called faster" or "slower" means that the interval of the paired ratio does not contain 1.
`benchmarks.gradings` measures how well whole gradings repeat.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay import recordings
from benchmarks.scratch import report
from harness import sandbox, stats
from harness.device import DEVICES
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session
from harness.judge.timing.dealt_values import DealtValues
from harness.judge.timing.plan import replay_plan_for
from harness.judge.timing.replayed.benchmark import PairedReplays, Player, ReplayMeasurement
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession, RecordedCall, scratch_for
from harness.problem import Problem, load
from harness.problem.reference import Reference
from harness.submission import Submission
from harness.verdict import ReplayedBenchmark
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
PAIRS_A_LAUNCHER = 10
# The kernel that is paired with a slower copy, and those paired with themselves.
SLOWED: tuple[str, dict[str, Any]] = ("vector_add", {"n": 4096**2})  # 16384 blocks
EXTRA_BLOCKS = 164
PAIRED: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {"rows": 4096, "cols": 4096}),
    ("gelu", {"n": 2048**2}),
]


@dataclass
class Named:
    """The second kernel of a pair."""

    submission: Submission
    name: str = "baseline"
    fault: str | None = None


def with_benchmark(slug: str, parameters: dict[str, Any]) -> Problem:
    """A problem of this repository with a custom benchmark case."""
    problem = load(ROOT / "problems" / slug)
    first = next(case for case in problem.benchmarks if "cuda" in case.devices)
    name = "×".join(map(str, parameters.values()))
    return problem.model_copy(update={"benchmarks": (first.model_copy(update={"name": name, "params": parameters}),)})


def slower_addition() -> Submission:
    """The Triton vector addition with 1 % more blocks: it repeats the first ones, which are no longer in L2."""
    source = (ROOT / "reference" / "vector_add" / "triton.py").read_text()
    for old, new in (
        ("tl.program_id(0)", f"(tl.program_id(0) % (tl.num_programs(0) - {EXTRA_BLOCKS}))"),
        ("triton.cdiv(n, BLOCK),", f"triton.cdiv(n, BLOCK) + {EXTRA_BLOCKS},"),
    ):
        assert old in source
        source = source.replace(old, new)
    return Submission.of(source, "py", author="slower")


def pairs(slug: str, parameters: dict[str, Any], candidate: Submission, count: int) -> dict[str, Any]:
    """Measure a candidate against the Triton kernel of a problem `count` times."""
    problem = with_benchmark(slug, parameters)
    case = GradedCase(problem, Reference.load(problem), "cuda", problem.resolve(problem.benchmarks[0]))
    baseline = Submission.read(ROOT / "reference" / slug / "triton.py", "baseline")
    settings = Settings.load()
    provider = sandbox.choose(settings.sandbox, providers(settings))
    both = [_recorded(each, problem, case, provider) for each in (candidate, baseline)]
    results: list[ReplayedBenchmark] = []
    started = time.perf_counter()
    while len(results) < count:
        more = min(PAIRS_A_LAUNCHER, count - len(results))
        results += _measure(problem, case, both, Named(baseline), provider, more)
    ratios = [result.baselines[0].speedup for result in results]
    return {
        "case": f"{slug} {case.name}",
        "pairs": len(ratios),
        "called_faster": sum(ratio.low > 1 for ratio in ratios),
        "called_slower": sum(ratio.high < 1 for ratio in ratios),
        "median_ratio": round(stats.median([ratio.median for ratio in ratios]), 5),
        "ratios": [[round(v, 5) for v in (ratio.low, ratio.median, ratio.high)] for ratio in ratios],
        "half_width_percent": round(100 * stats.median([(r.high - r.low) / 2 for r in ratios]), 3),
        "scores_ns": [result.score.median_ns for result in results],
        "calls": sorted({len(result.calls.device_ns) for result in results}),
        "seconds_a_pair": round((time.perf_counter() - started) / max(1, len(ratios)), 2),
    }


def _recorded(submission: Submission, problem: Problem, case: GradedCase, provider: sandbox.Provider) -> RecordedCall:
    recording = recordings(submission, problem, [case], provider)[0][case.name]
    assert isinstance(recording, RecordedCall), recording
    return recording


def _measure(
    problem: Problem,
    case: GradedCase,
    both: list[RecordedCall],
    baseline: Named,
    provider: sandbox.Provider,
    count: int,
) -> Iterator[ReplayedBenchmark]:
    """Measure `count` pairs in one pair of launchers, as `harness.judge.timing.replayed.timing` measures a case."""
    sensors, dealt = DEVICES["cuda"].sensors(), DealtValues()
    with contextlib.ExitStack() as stack:
        launchers = []
        for _ in both:
            session = stack.enter_context(Session.start(provider, "cuda", problem.limits, role="launcher"))
            launchers.append(LauncherSession(session, "cuda"))
        scratch = stack.enter_context(scratch_for(both, "cuda"))
        for _ in range(count):
            fresh = FreshInputs(case)
            try:
                loaded = zip(launchers, both, strict=True)
                mine, other = [Player(*each, case, scratch) for each in loaded]
                mine.warm_up(fresh)
                other.warm_up(fresh)
                beside = [PairedReplays(baseline, other)]
                plan = replay_plan_for("default")
                yield ReplayMeasurement(case, mine, beside, fresh, plan, sensors, None, dealt.dealer_for(case)).run()
            finally:
                fresh.close()


def line(kind: str, row: dict[str, Any]) -> str:
    scores = row["scores_ns"]
    return (
        f"{kind:<7} {row['case']:<22} {row['pairs']:3} pairs  faster {row['called_faster']}  slower "
        f"{row['called_slower']}  ratio {row['median_ratio']}  half width {row['half_width_percent']} %  "
        f"{stats.median(scores):,.0f} ns, spread {100 * (max(scores) - min(scores)) / stats.median(scores):.2f} %  "
        f"calls {row['calls'][0]} to {row['calls'][-1]}  {row['seconds_a_pair']} s a pair"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--same", type=int, default=100, help="total number of pairs of a kernel with itself")
    parser.add_argument("--slower", type=int, default=60, help="number of pairs of a kernel with a slower copy")
    given = parser.parse_args()
    same = [Submission.read(ROOT / "reference" / slug / "triton.py", "same") for slug, _ in PAIRED]
    each = given.same // len(PAIRED)
    results = {
        "same": [pairs(slug, p, copy, each) for (slug, p), copy in zip(PAIRED, same, strict=True) if each],
        "slower": [pairs(*SLOWED, slower_addition(), given.slower)] if given.slower else [],
    }
    what = "a kernel against itself, and against a copy made 1 % slower"
    report("repeatability", what, given.out, DEVICES["cuda"].facts().known() | results)
    print("\n".join(line(kind, row) for kind, rows in results.items() for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
