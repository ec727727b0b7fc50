"""Grades the organizers' kernels of `reference/`, and says how close they come to the device and to PyTorch.

    python -m benchmarks.baselines softmax attention --out benchmarks/results/baselines_h200
    python -m benchmarks.baselines --table --out benchmarks/results/baselines_h200

The first grades every kernel of the named problems (all, without a name) with `submit`, in alternation with PyTorch's
own (eager, torch.compile, and where it has one a fused kernel), and writes one JSON a problem. PyTorch's own are graded
with --quick: whether they are accepted is what counts there, since their times are taken beside each of the others. The
second makes a Markdown table of those files. Settings (sandbox, image, binds) come from kernelmark.toml or the
environment, as always.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTORCH = ("eager", "compiled", "flash", "fused")
SUBMIT = "from kernelmark.scripts import submit; submit()"


def grade(problem: str, kernel: Path) -> dict[str, Any]:
    """Grade one kernel, and keep what the table needs."""
    names = [name for name in PYTORCH if (kernel.parent / f"{name}.py").exists()]
    against = ["--quick"] if kernel.stem in PYTORCH else [f"--baseline={name}" for name in names]
    line = [
        sys.executable,
        "-c",
        SUBMIT,
        problem,
        str(kernel),
        "--no-record",
        "--format=json",
        "--author=bench",
        *against,
    ]
    started = time.perf_counter()
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    verdict = json.loads(ended.stdout) if ended.stdout.strip() else {}
    return {
        "kernel": kernel.name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "outcome": verdict.get("outcome", "no verdict"),
        "message": verdict.get("message", ended.stderr[-2000:]),
        "wall_s": round(seconds, 1),
        "effort": verdict.get("effort"),
        "problem": verdict.get("problem"),
        "submission": verdict.get("submission"),
        "environment": verdict.get("environment"),
        "tests": len(verdict.get("tests", [])),
        "doubts": [doubt["text"] for doubt in verdict.get("doubts", [])],
        "score": verdict.get("score"),
        "speedups": verdict.get("speedups", []),
        "cases": [_case(case) for case in verdict.get("benchmarks", [])],
    }


def _case(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": case["name"],
        "mode": case["mode"],
        "score": case["score"],
        "stop_reason": case["stop_reason"],
        "roofline": case.get("roofline"),
        "minimum_bytes": case.get("minimum_bytes"),
        "minimum_flops": case.get("minimum_flops"),
        "claimed_latency_median_ns": case["claimed_latency"]["claimed_median_ns"],
        "baselines": {
            each["name"]: {"ns": each["claimed_ns"], "speedup": each["speedup"]} for each in case.get("baselines", [])
        },
        "doubts": [doubt["code"] for doubt in case.get("doubts", [])],
    }


def grade_all(problems: list[str], only: list[str], out: Path) -> bool:
    """Grade the kernels of the problems, and write each problem's file. True if all were accepted."""
    out.mkdir(parents=True, exist_ok=True)
    accepted = True
    for problem in problems:
        for kernel in sorted((ROOT / "reference" / problem).iterdir()):
            if kernel.suffix not in (".py", ".cu") or (only and kernel.stem not in only):
                continue
            row = grade(problem, kernel)
            keep(row, problem, out)
            accepted &= row["outcome"] == "accepted"
            said = f"{row['outcome']:<13} {row['wall_s']:6.1f} s  {' '.join([row['message'], *row['doubts']])[:300]}"
            print(f"{problem:<20} {kernel.name:<12} {said}", flush=True)
    return accepted


def keep(row: dict[str, Any], problem: str, out: Path) -> None:
    """Add a kernel's row to its problem's file; those of kernels that are not graded anew stay."""
    file = out / f"{problem}.json"
    rows = {each["kernel"]: each for each in json.loads(file.read_text())["rows"]} if file.exists() else {}
    rows[row["kernel"]] = row
    document = {
        "what": "the organizers' kernels of one problem, graded with `submit`",
        "command": f"python -m benchmarks.baselines {problem} --out benchmarks/results/{out.name}",
        "rows": [rows[name] for name in sorted(rows)],
    }
    partial = out / f".{problem}.json"
    partial.write_text(json.dumps(document, indent=1) + "\n")
    partial.rename(file)


def table(out: Path) -> Iterator[str]:
    """A Markdown line after the other: for each problem its cases, for each case its kernels."""
    documents = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    environment = next(row["environment"] for each in documents for row in each["rows"] if row["environment"])
    yield "# The organizers' kernels"
    yield ""
    device = f"{environment['device_name']}, torch {environment['torch']}, triton {environment['triton']}"
    yield f"{device}, sandbox {environment['sandbox']}; `python -m benchmarks.baselines --table --out {out}`."
    yield "Times are scores: the median over sealed rounds, with its interval. A share is of the roofline that"
    yield "`kernelmark calibrate` measured. × is how many times as fast the kernel is as PyTorch's: the median of"
    yield "paired ratios, with its interval. PyTorch's own kernels stand with their time beside the best of ours."
    for document in documents:
        yield from _problem(document)


def _problem(document: dict[str, Any]) -> Iterator[str]:
    rows = document["rows"]
    yield f"\n## {next(row['problem']['slug'] for row in rows if row['problem'])}\n"
    refused = [
        f"`{row['kernel']}`: {row['outcome']} ({row['message']})" for row in rows if row["outcome"] != "accepted"
    ]
    yield (
        f"{len(rows) - len(refused)} of {len(rows)} kernels accepted." + "".join(f" {each}" for each in refused) + "\n"
    )
    ours = [row for row in rows if not _of_pytorch(row)]
    beside = [name for name in PYTORCH if any(name in case["baselines"] for row in ours for case in row["cases"])]
    yield "| case | kernel | µs | interval | roofline |" + "".join(f" × {name} | interval |" for name in beside)
    yield "|---|---|---:|---|---:|" + "---:|---|" * len(beside)
    for name in dict.fromkeys(case["name"] for row in ours for case in row["cases"]):
        found = [(row["kernel"], case) for row in ours for case in row["cases"] if case["name"] == name]
        for kernel, case in found:
            yield _line(kernel, case, beside)
        _, best = min(found, key=lambda each: each[1]["score"]["median_ns"])
        for other in beside:
            if other in best["baselines"]:
                yield _line_of_pytorch(other, best, beside)


def _of_pytorch(row: dict[str, Any]) -> bool:
    return row["kernel"].partition(".")[0] in PYTORCH


def _line(kernel: str, case: dict[str, Any], beside: list[str]) -> str:
    score, roof = case["score"], case["roofline"]
    times = [f"{score[key] / 1000:.4g}" for key in ("median_ns", "low_ns", "high_ns")]
    share = f"{100 * roof['share']:.0f} % {roof['limit']}" if roof else ""
    cells = [case["name"], f"`{kernel}`", times[0], f"{times[1]} – {times[2]}", share]
    for name in beside:
        ratio = case["baselines"].get(name, {}).get("speedup")
        cells += [f"{ratio['median']:.3f}", f"{ratio['low']:.3f} – {ratio['high']:.3f}"] if ratio else ["", ""]
    return f"| {' | '.join(cells)} |"


def _line_of_pytorch(name: str, best: dict[str, Any], beside: list[str]) -> str:
    ns, roof = best["baselines"][name]["ns"], best["roofline"]
    share = f"{100 * roof['share'] * best['score']['median_ns'] / ns:.0f} % {roof['limit']}" if roof else ""
    return f"| {' | '.join([best['name'], f'`{name}.py`', f'{ns / 1000:.4g}', '', share, *[''] * 2 * len(beside)])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=sorted(path.name for path in (ROOT / "reference").iterdir()))
    parser.add_argument("--only", nargs="*", default=[], metavar="KERNEL", help="triton, cuda, ...: just these")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="make the table of what was graded before")
    given = parser.parse_args()
    if given.table:
        given.out.with_suffix(".md").write_text("\n".join(table(given.out)) + "\n")
    elif not grade_all(given.problems, given.only, given.out):
        sys.exit(1)


if __name__ == "__main__":
    main()
