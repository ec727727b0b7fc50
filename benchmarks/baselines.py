"""Grades the organizers' kernels of `reference/`, and compares them with the device's roofline and with PyTorch.

    python -m benchmarks.baselines softmax attention --out benchmarks/results/baselines_h200
    python -m benchmarks.baselines --table --out benchmarks/results/baselines_h200 \
        --calibration benchmarks/results/calibration_h200.json

The first command submits every kernel of the named problems (by default all), with its own name as the author, and
records the verdicts in separate ledgers, one per problem. Our kernels alternate with PyTorch's (eager, torch.compile,
and whatever else `PYTORCH` names); PyTorch's are graded alone, with --quick. The second command makes a Markdown table
of the newest verdict on each kernel, with shares of the roofline that `kernelmark calibrate` measured. Settings
(sandbox, image, binds) come from kernelmark.toml or the environment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.judge.timing.roof import demand_of
from harness.problem import load
from harness.verdict import BenchmarkResult, Interval, Outcome, Ratio, Verdict
from harness.verdict.roofline import Calibration, Demand, roofline
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger

ROOT = Path(__file__).resolve().parent.parent
PYTORCH = ("eager", "compiled", "max_autotune", "manual", "flash", "fused", "launch_each", "dense", "library")
SUBMIT = "from kernelmark.commands.scripts import submit; submit()"


def grade(problem: str, kernel: Path, out: Path) -> bool:
    """Submit one kernel, print the result in one line, and return whether it was accepted."""
    names = [name for name in PYTORCH if (kernel.parent / f"{name}.py").exists()]
    alone = kernel.stem in PYTORCH
    line = [sys.executable, "-c", SUBMIT, problem, str(kernel), f"--author={kernel.stem}"]
    line += ["--quick", "--baseline=none"] if alone else [f"--baseline={name}" for name in names]
    with tempfile.TemporaryDirectory() as scratch:  # keep the project's archive and board unchanged
        places = {"RESULTS": out.resolve(), "ARCHIVE": Path(scratch, "archive"), "BOARD": Path(scratch, "BOARD.md")}
        environment = {**os.environ, **{f"KERNELMARK_{name}": str(path) for name, path in places.items()}}
        started = time.perf_counter()
        ended = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = (ended.stdout.strip() or ended.stderr.strip() or "nothing said").splitlines()
    shown = said[0] if ended.stdout.strip() else said[-1]
    print(f"{problem:<20} {kernel.name:<12} {time.perf_counter() - started:6.1f} s  {shown[:300]}", flush=True)
    return ended.returncode == 0


def grade_all(problems: Sequence[str], only: Sequence[str], out: Path, jobs: int) -> bool:
    """Grade the kernels of the problems, `jobs` at a time; returns whether all were accepted."""
    out.mkdir(parents=True, exist_ok=True)
    kernels = [
        (problem, kernel)
        for problem in problems
        for kernel in sorted((ROOT / "reference" / problem).iterdir())
        if kernel.suffix in (".py", ".cu") and (not only or kernel.stem in only)
        if kernel.stem not in {other.name for other in load(ROOT / "problems" / problem).baselines}
    ]
    with ThreadPoolExecutor(jobs) as pool:
        return all(
            list(pool.map(lambda each: grade(each[0], each[1], out), kernels))
        )  # the list grades all of them, even after a failure


def newest(ledger: Path) -> list[Verdict]:
    """The last verdict on each kernel, in order of name."""
    verdicts = (entry.verdict for entry in JsonlLedger(ledger).read() if entry.kind == VERDICT)
    by_name = {verdict.submission.name: verdict for verdict in verdicts}
    return [by_name[name] for name in sorted(by_name)]


def table(out: Path, calibration: Calibration) -> Iterator[str]:
    """The lines of the Markdown tables: for each problem its cases, and for each case its kernels."""
    graded = [newest(path) for path in sorted(out.glob("*.jsonl"))]
    ran = graded[0][0].environment
    yield "# The organizers' kernels"
    yield ""
    device = f"{ran.device_name}, driver {ran.driver}, torch {ran.torch}, triton {ran.triton}, sandbox {ran.sandbox}"
    days = sorted({str(verdict.created_at.date()) for verdicts in graded for verdict in verdicts})
    yield f"{device}; {' and '.join(days)}; `python -m benchmarks.baselines --out benchmarks/results/{out.name}`."
    yield "Times are scores with their intervals: of replayed calls the pseudomedian over blocks of two, of rounds"
    yield "the median. A share is of the roofline that"
    yield "`kernelmark calibrate` measured. × is how many times as fast the kernel is as PyTorch's: the median of"
    yield "paired ratios, with its interval. PyTorch's own kernels stand with their time beside the best of ours."
    for verdicts in graded:
        yield from _problem(verdicts, calibration)


def _problem(verdicts: list[Verdict], calibration: Calibration) -> Iterator[str]:
    accepted = [verdict for verdict in verdicts if verdict.outcome is Outcome.ACCEPTED]
    refused = [f" `{v.submission.name}`: {v.outcome} ({v.message})" for v in verdicts if v not in accepted]
    yield f"\n## {verdicts[0].problem.slug}\n"
    replayed = sum(verdict.timing == "replayed" for verdict in accepted)
    yield f"{len(accepted)} of {len(verdicts)} kernels accepted, {replayed} replayed.{''.join(refused)}\n"
    for verdict in accepted:
        for doubt in verdict.doubts:
            if doubt.code == "not_replayed":
                yield f"`{verdict.submission.name}`: {doubt.text}.\n"
    ours = [
        (verdict.submission.name, case)
        for verdict in accepted
        if verdict.submission.author not in PYTORCH
        for case in verdict.benchmarks
    ]
    beside = [name for name in PYTORCH if any(_over(case, name) for _, case in ours)]
    yield "| case | kernel | µs | interval | roofline |" + "".join(f" × {name} | interval |" for name in beside)
    yield "|---|---|---:|---|---:|" + "---:|---|" * len(beside)
    problem = load(ROOT / "problems" / verdicts[0].problem.slug)
    graded = {case.name for _, case in ours}  # some benchmarks are for the CPU only
    for benchmark in (each for each in problem.benchmarks if each.name in graded):
        demand = demand_of(problem.resolve(benchmark))
        measured = [row for row in ours if row[1].name == benchmark.name]
        for kernel, case in measured:
            cells = [case.name, f"`{kernel}`", *_time(case.score), _share(calibration, demand, case.score.median_ns)]
            for name in beside:
                ratio = _over(case, name)
                cells += [f"{ratio.median:.3f}", f"{ratio.low:.3f} – {ratio.high:.3f}"] if ratio else ["", ""]
            yield f"| {' | '.join(cells)} |"
        best = min((case for _, case in measured), key=lambda case: case.score.median_ns)
        for baseline in best.baselines:
            share = _share(calibration, demand, baseline.time_ns)
            name, _, other = baseline.name.partition(" ")
            kernel = f"`{name}.py` {other}".rstrip()
            cells = [best.name, kernel, f"{baseline.time_ns / 1000:.4g}", "", share]
            yield f"| {' | '.join([*cells, *[''] * 2 * len(beside)])} |"


def _over(case: BenchmarkResult, name: str) -> Ratio | None:
    return next((baseline.speedup for baseline in case.baselines if baseline.name.partition(" ")[0] == name), None)


def _time(score: Interval) -> list[str]:
    median, low, high = (f"{ns / 1000:.4g}" for ns in (score.median_ns, score.low_ns, score.high_ns))
    return [median, f"{low} – {high}"]


def _share(calibration: Calibration, demand: Demand, time_ns: float) -> str:
    roof = roofline(calibration, demand, time_ns)
    return f"{100 * roof.share:.0f} % {roof.limit}" if roof else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=sorted(path.name for path in (ROOT / "reference").iterdir()))
    parser.add_argument("--only", nargs="*", default=[], metavar="KERNEL", help="grade only these: triton, cuda, ...")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1, help="concurrent gradings; timed parts still run alone")
    parser.add_argument("--table", action="store_true", help="make the table from earlier gradings")
    parser.add_argument(
        "--calibration", type=Path, help="the device's calibration, for the table; see `kernelmark calibrate`"
    )
    given = parser.parse_args()
    if given.table:
        if given.calibration is None:
            parser.error("--table needs --calibration: the file that `kernelmark calibrate` wrote for this device")
        calibration = Calibration.model_validate_json(given.calibration.read_bytes())
        given.out.with_suffix(".md").write_text("\n".join(table(given.out, calibration)) + "\n")
    elif not grade_all(given.problems, given.only, given.out, given.jobs):
        sys.exit(1)


if __name__ == "__main__":
    main()
