"""Grades the reference kernels of the four problems with `submit`, as a user would, and writes the results as JSON.

    python -m benchmarks.end_to_end --out benchmarks/results/end_to_end_h200.json

Settings (sandbox, image, binds) come from kernelmark.toml or the environment, as always. For each kernel the table
shows the wall time of the whole command and, for each benchmark case, how far the runner's claim lies from the judge's
own clock. A probe, graded like the rest, reports what its sandbox lets it do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

KEPT = (
    "name", "mode", "claimed_ns", "sealed_ns", "tolerance_ns", "overhead_ns", "noise_ns", "score", "stop_reason",
)  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = ("vector_add", "softmax", "gelu", "matmul")
KERNELS = ("triton.py", "cuda.cu", "compiled.py", "eager.py")
PROBE = """
import os
from pathlib import Path


def softmax(x, y):
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    interfaces = sorted(os.listdir("/sys/class/net"))
    try:
        Path("/probe").write_text("")
        root = "writable"
    except OSError:
        root = "read-only"
    raise RuntimeError(
        f"uid={os.getuid()} caps={status['CapEff'].strip()} bounding={status['CapBnd'].strip()} "
        f"no_new_privs={status['NoNewPrivs'].strip()} seccomp={status['Seccomp'].strip()} net={interfaces} root={root}"
    )
"""


def submit(problem: str, kernel: Path, *flags: str) -> tuple[dict[str, Any], float, str]:
    """Run the command; returns the verdict's document, the seconds that it took, and its standard error."""
    started = time.perf_counter()
    command = "from kernelmark.scripts import submit; submit()"
    line = [sys.executable, "-c", command, problem, str(kernel), "--no-record", "--format", "json", "--author", "bench"]
    line += flags
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    return (json.loads(ended.stdout) if ended.stdout.strip() else {}), seconds, ended.stderr


def row(problem: str, kernel: Path) -> dict[str, Any]:
    """Grade one kernel and keep what the table needs."""
    verdict, seconds, errors = submit(problem, kernel)
    cases = []
    for case in verdict.get("benchmarks", []):
        calls = case["rounds"][0]["calls"]
        difference = 100 * (case["claimed_ns"] - case["sealed_ns"]) / max(case["sealed_ns"], 1)
        cases.append(
            {key: case[key] for key in KEPT}
            | {
                "roofline": case.get("roofline"),
                "speedups": {each["name"]: each["speedup"] for each in case.get("baselines", [])},
                "calls": calls,
                "batch_ms": round(case["sealed_ns"] * calls / 1e6, 2),
                "claim_minus_sealed_percent": round(difference, 2),
                "claimed_latency_median_ns": case["claimed_latency"]["claimed_median_ns"],
                "doubts": [doubt["code"] for doubt in case.get("doubts", [])],
            }
        )
    return {
        "problem": problem,
        "kernel": kernel.name,
        "outcome": verdict.get("outcome", "no verdict"),
        "message": verdict.get("message", errors[-2000:]),
        "wall_s": round(seconds, 2),
        "score": verdict.get("score"),
        "speedups": verdict.get("speedups", []),
        "tests": len(verdict.get("tests", [])),
        "environment": verdict.get("environment"),
        "cases": cases,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print a line a kernel and a line a case."""
    for each in rows:
        ended = f"{each['outcome']:<13} {each['wall_s']:6.1f} s  {each['message'][:300]}"
        print(f"{each['problem']:<11} {each['kernel']:<10} {ended}")
        for case in each["cases"]:
            clocks = f"claimed {case['claimed_ns']:>11,} ns  sealed {case['sealed_ns']:>11,} ns"
            held = f"{case['claim_minus_sealed_percent']:+6.2f} %  tolerance {case['tolerance_ns']:>9,} ns"
            roof = f"{100 * case['roofline']['share']:4.0f} %" if case["roofline"] else ""
            batch = f"batch {case['batch_ms']:7.2f} ms  overhead {case['overhead_ns'] / 1e6:5.2f} ms"
            doubted = ",".join(case["doubts"])
            print(f"    {case['name']:<22} {case['mode']:<6} {clocks}  {held}  {batch}  {roof}  {doubted}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--repeat", type=int, default=3, help="timings of the warm Triton softmax")
    given = parser.parse_args()
    probe = given.out.parent / "probe.py"
    probe.write_text(PROBE)
    try:
        probed = row("softmax", probe)
    finally:
        probe.unlink()
    rows = [
        row(problem, path)
        for problem in given.problems
        for name in KERNELS
        if (path := ROOT / "reference" / problem / name).exists()
    ]
    warm = [submit("softmax", ROOT / "reference" / "softmax" / "triton.py")[1] for _ in range(given.repeat)]
    document = {
        "what": "reference kernels graded end to end with `submit`",
        "command": "python -m benchmarks.end_to_end " + " ".join(sys.argv[1:]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": next((each["environment"] for each in rows if each["environment"]), None),
        "sandbox_probe": probed["message"],
        "submit_softmax_triton_warm_s": [round(seconds, 2) for seconds in warm],
        "rows": rows,
    }
    given.out.write_text(json.dumps(document, indent=1) + "\n")
    show(rows)
    print("probe:", probed["message"])
    print("warm `submit` of the Triton softmax:", ", ".join(f"{seconds:.2f} s" for seconds in warm))


if __name__ == "__main__":
    main()
