"""Grades a mix of submissions with a fleet: verdicts a minute, the longest wait, and how scores compare with those of
submissions graded alone.

    python -m benchmarks.fleet --efforts screen,quick --alone screen --hostile --out fleet.json

The mix has 60 submissions to softmax, vector_add, layernorm and matmul, a quarter each: of 15, eight are right, four
wrong, one ends its process, one crashes it, and one waits 5 s in its first call. Every one has a source of its own, so
that none is a duplicate. Settings (sandbox, image, binds) come from kernelmark.toml or the environment. `--alone`
grades each right kernel again, with nothing beside it, and compares the scores; `--hostile` grades them once more
beside attacks, whose own outcomes the tests of attacks are for. `--inline` takes half of the mix, and thirty
submissions that use `load_inline` (`benchmarks.inline`).
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import kernelmark
from benchmarks import inline
from harness import stats
from harness.judge.timing.neighbours import busy
from harness.kinds import Effort
from kernelmark.diagnostics.selftest import HERE
from kernelmark.diagnostics.selftest import PROBLEMS as ONE_LINERS

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = ("softmax", "vector_add", "layernorm", "matmul")
DOUBLE = ONE_LINERS / "double"
RIGHT = ("triton.py",) * 4 + ("cuda.cu",) * 2 + ("eager.py",) * 2
WRAPPED = """
_right = {name}


def {name}(*arguments):
    {before}
    _right(*arguments)
    {after}
"""
WRONG = (
    ("pass", "arguments[{output}].mul_(1.5)"),
    ("pass", "arguments[{output}].view(-1)[-1] = 7.0"),
    ("return", ""),
    ("pass", "arguments[{output}].zero_()"),
)
HOSTILE = (
    "endless_forks",
    "full_disks",
    "killed_processes",
    "million_files",
    "spinning_daemon",
    "gpu_memory_hog",
)
HANGS = "def twice(x, y):\n    while True:\n        pass\n"
SLOW = "import time; time.sleep(0 if globals().setdefault('_called', 0) else 5); globals()['_called'] = 1"


def mix(seed: int) -> list[kernelmark.Job]:
    """The 60 jobs in a random order."""
    made = []
    for problem in PROBLEMS:
        folder = ROOT / "reference" / problem
        eager = (folder / "eager.py").read_text()
        output = 3 if problem == "layernorm" else -1
        for copy, name in enumerate(RIGHT):
            comment = "//" if name.endswith(".cu") else "#"
            source = f"{(folder / name).read_text()}\n{comment} copy {copy}\n"
            made.append(_job(problem, source, name, name.partition(".")[2]))
        for number, (before, after) in enumerate(WRONG):
            after = after.format(output=output)
            made.append(
                _job(problem, eager + WRAPPED.format(name=problem, before=before, after=after), f"wrong{number}")
            )
        made.append(_job(problem, "import os\nos._exit(3)\n", "ends"))
        made.append(_job(problem, "import ctypes\nctypes.string_at(0)\n", "crashes"))
        made.append(_job(problem, eager + WRAPPED.format(name=problem, before=SLOW, after=""), "waits"))
    random.Random(seed).shuffle(made)
    return made


def mixes(count: int) -> list[kernelmark.Job]:
    """So many mixes in a row, each in an order of its own; the sources of each have a comment that says which it is."""
    made = []
    for seed in range(count):
        for job in mix(seed):
            comment = "//" if job.language == "cu" else "#"
            made.append(dataclasses.replace(job, submission=f"{job.submission}\n{comment} mix {seed}\n"))
    return made


def with_inline(folder: Path) -> list[kernelmark.Job]:
    """Half of the mix and as many by `load_inline`; the folder is for copies of their problems."""
    made = mix(0)[:30] + inline.jobs(folder)
    random.Random(0).shuffle(made)
    return made


def beside_hostile() -> list[kernelmark.Job]:
    """Each right kernel once, among attacks on the machine and on whoever else uses it."""
    right = [_right(problem, name) for problem in PROBLEMS for name in dict.fromkeys(RIGHT)]
    hostile = [
        kernelmark.Job(
            problem=DOUBLE, submission=next((HERE / "attacks" / each).glob("submission.*")), key=("double", each)
        )
        for each in HOSTILE
    ]
    hostile += [kernelmark.Job(problem=DOUBLE, submission=HANGS, key=("double", "hangs"))]
    return [job for pair in itertools.zip_longest(hostile, right) for job in pair if job is not None]


def _right(problem: str, name: str) -> kernelmark.Job:
    return kernelmark.Job(problem=problem, submission=ROOT / "reference" / problem / name, key=(problem, name))


def _job(problem: str, source: str, kind: str, language: str = "py") -> kernelmark.Job:
    return kernelmark.Job(problem=problem, submission=source, language=language, key=(problem, kind))


def graded(fleet: kernelmark.Fleet, jobs: list[kernelmark.Job], effort: Effort) -> dict[str, Any]:
    """The results of one mix."""
    begun, used = time.perf_counter(), processor_seconds()
    results, at = list[kernelmark.JobResult](), list[float]()
    for result in fleet.grade_many(jobs, effort=effort):
        results.append(result)
        at.append(round(time.perf_counter() - begun, 1))
    seconds = time.perf_counter() - begun
    outcomes = Counter(
        str(result.verdict.outcome if result.verdict else type(result.error).__name__) for result in results
    )
    wrong = [
        f"{result.job.key}: {f'{verdict.outcome}: {verdict.message}' if (verdict := result.verdict) else result.error}"
        for result in results
        if _accepted(result) != _is_right(result.job) and result.job.problem != DOUBLE
    ]
    return {
        "effort": effort,
        "jobs": len(jobs),
        "seconds": round(seconds, 1),
        "verdicts_a_minute": round(60 * len(results) / seconds, 1),
        "after_the_first_ten_a_minute": round(60 * (len(at) - 10) / (at[-1] - at[9]), 1) if len(at) > 20 else None,
        "processors_busy": round((processor_seconds() - used) / seconds, 1),
        "longest_wait_s": round(max(result.seconds for result in results), 1),
        "median_wait_s": round(stats.median([result.seconds for result in results]), 1),
        "outcomes": dict(outcomes),
        "results_at_s": at,
        "not_as_expected": wrong,
        "not_replayed": sum(
            result.verdict is not None and result.verdict.timing != "replayed" for result in filter(_accepted, results)
        ),
        "scores": [
            {"problem": result.job.key[0], "kind": result.job.key[1], "cases": _scores(result.verdict)}  # type: ignore[index]
            for result in results
            if result.verdict and _accepted(result)
        ],
    }


def summary(mix: dict[str, Any]) -> str:
    """What is printed of a mix, in one line."""
    return json.dumps({key: value for key, value in mix.items() if key not in ("scores", "results_at_s")})


def processor_seconds() -> float:
    """Seconds that the processors which this process may use were busy, together."""
    return busy(Path("/proc/stat").read_text(), os.sched_getaffinity(0)) / 1e9


def _is_right(job: kernelmark.Job) -> bool:
    assert isinstance(job.key, tuple)
    return job.key[1] in (*RIGHT, "waits") or job.key[1].startswith("inline")


def _accepted(result: kernelmark.JobResult) -> bool:
    return result.verdict is not None and result.verdict.outcome == "accepted"


def _scores(verdict: kernelmark.Verdict) -> dict[str, int]:
    return {benchmark.name: benchmark.score.median_ns for benchmark in verdict.benchmarks}


def environment(fleet: kernelmark.Fleet) -> dict[str, Any]:
    """Where the fleet grades."""
    (result,) = fleet.grade_many([_job("vector_add", (ROOT / "reference/vector_add/eager.py").read_text(), "eager.py")])
    if result.verdict is None:
        raise SystemExit(f"nothing can be graded here: {result.error}")
    return result.verdict.environment.model_dump(mode="json", exclude_none=True)


def alone(fleet: kernelmark.Fleet, effort: Effort) -> list[dict[str, Any]]:
    """Each right kernel graded with nothing beside it."""
    rows = []
    for problem in PROBLEMS:
        for name in dict.fromkeys(RIGHT):
            (result,) = fleet.grade_many([_right(problem, name)], effort=effort)
            if result.verdict and result.verdict.score:
                cases = _scores(result.verdict)
                rows.append({"problem": problem, "kind": name, "cases": cases, "seconds": round(result.seconds, 1)})
    return rows


def differences(mixed: list[dict[str, Any]], by_itself: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every score of the mix over that of the same kernel graded alone, in percent."""
    known = {(each["problem"], each["kind"]): each["cases"] for each in by_itself}
    rows = []
    for each in mixed:
        for case, score_ns in each["cases"].items():
            own = known.get((each["problem"], each["kind"]), {}).get(case)
            if own:
                percent = round(100 * (score_ns / own - 1), 2)
                rows.append({"problem": each["problem"], "kind": each["kind"], "case": case, "percent": percent})
    return rows


def main() -> None:
    """Run, print a table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--efforts", default="screen,quick", help="of the mix, one after the other")
    parser.add_argument("--alone", default="", choices=("", *get_args(Effort)), help="an effort of the mix")
    parser.add_argument("--jobs", type=int, help="how many, of several mixes in a row; by default one mix")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--slots", type=int)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    document: dict[str, Any] = {
        "what": "a fleet: verdicts a minute, the longest wait, and scores beside those of submissions graded alone",
        "command": f"python -m benchmarks.fleet {' '.join(sys.argv[1:])}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    begun = time.perf_counter()
    with kernelmark.Fleet(slots=arguments.slots) as fleet, tempfile.TemporaryDirectory() as folder:
        count = arguments.jobs or 60
        jobs = (with_inline(Path(folder)) if arguments.inline else mixes(-(-count // 60)))[:count]
        fleet.start()
        document["start_s"] = round(time.perf_counter() - begun, 1)
        document["environment"] = environment(fleet)
        document["mixes"] = []
        for effort in filter(None, arguments.efforts.split(",")):
            document["mixes"].append(graded(fleet, jobs, effort))
            print(summary(document["mixes"][-1]), flush=True)
        mixed = [each for each in document["mixes"] if each["effort"] == arguments.alone]
        if arguments.hostile:
            document["hostile"] = graded(fleet, beside_hostile(), arguments.alone or "screen")
            print(summary(document["hostile"]), flush=True)
            mixed.append(document["hostile"])
        if arguments.alone:
            document["alone"] = alone(fleet, arguments.alone)
            for each in mixed:
                each["differences"] = differences(each["scores"], document["alone"])
                worst = sorted(each["differences"], key=lambda row: abs(row["percent"]))
                print(json.dumps(worst[-6:]), sum(abs(row["percent"]) <= 1 for row in worst), "of", len(worst))
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
