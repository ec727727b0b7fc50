"""Grades files several times, to measure how long `submit` takes and how well its scores repeat.

    python -m benchmarks.gradings --gradings 10 softmax/triton.py vector_add/cuda.cu:none

A file can name its baseline after a colon (default: eager). Settings (sandbox, image, binds) come from kernelmark.toml
or the environment. The spread of a case is (largest - smallest) / median of its scores. The memory is the peak use of
the device during a grading, beyond that before it, sampled every 10 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.scratch import report
from harness.device import DEVICES

ROOT = Path(__file__).resolve().parent.parent
LOOK_S = 0.01


class PeakMemory(threading.Thread):
    """Samples the memory of the first visible device from construction until `stop`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        import pynvml

        pynvml.nvmlInit()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
        device = pynvml.nvmlDeviceGetHandleByIndex(int(visible) if visible.isdecimal() else 0)
        self._used: Callable[[], int] = lambda: int(pynvml.nvmlDeviceGetMemoryInfo(device).used)
        self._before = self._most = self._recent = self._used()
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(LOOK_S):
            used = self._used()
            self._most, self._recent = max(self._most, used), max(self._recent, used)

    def since_last(self) -> int:
        """The peak use in bytes beyond that at the start, since the last call of this."""
        most, self._recent = self._recent, self._used()
        return max(most, self._recent) - self._before

    def stop(self) -> int:
        """The peak use in bytes beyond that at the start."""
        self._stopped.set()
        self.join()
        return self._most - self._before


def submit(problem: str, kernel: Path, *flags: str) -> tuple[dict[str, Any], float, str]:
    """Run the command; returns the verdict's document, the time in seconds, and its standard error."""
    started = time.perf_counter()
    command = "from kernelmark.commands.scripts import submit; submit()"
    line = [sys.executable, "-c", command, problem, str(kernel), "--no-record", "--format", "json", "--author", "bench"]
    line += flags
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    return (json.loads(ended.stdout) if ended.stdout.strip() else {}), seconds, ended.stderr


def rows(name: str, gradings: int, quick: bool) -> dict[str, Any]:
    """The results of one file."""
    path, _, baseline = name.partition(":")
    problem, _, kernel = path.partition("/")
    flags = ["--baseline", baseline or "eager", *["--quick"] * quick]
    graded, memory = [], []
    for _ in range(gradings):
        peak = PeakMemory()
        graded.append(submit(problem, ROOT / "reference" / problem / kernel, *flags))
        memory.append(peak.stop())
    accepted = [verdict for verdict, _, _ in graded if verdict.get("outcome") == "accepted"]
    cases = []
    for place, first in enumerate(accepted[0]["benchmarks"] if accepted else []):
        scores = [each["benchmarks"][place]["score"]["median_ns"] for each in accepted]
        timed = [each["benchmarks"][place] for each in accepted]
        cases.append(
            {
                "case": first["name"],
                "scores_ns": scores,
                "spread_percent": round(100 * (max(scores) - min(scores)) / sorted(scores)[len(scores) // 2], 2),
                "calls": [len(each["calls"]["device_ns"]) for each in timed if each["mode"] == "replayed"],
                "doubts": sorted({doubt["code"] for each in timed for doubt in each.get("doubts", [])}),
            }
        )
    return {
        "file": name,
        "outcomes": [verdict.get("outcome", errors.strip()[-300:]) for verdict, _, errors in graded],
        "timing": sorted({verdict["timing"] for verdict in accepted}),
        "seconds": [round(seconds, 1) for _, seconds, _ in graded],
        "peak_device_bytes": memory,
        "cases": cases,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="PROBLEM/KERNEL[:BASELINE]")
    parser.add_argument("--gradings", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "gradings.json")
    given = parser.parse_args()
    results = [rows(name, given.gradings, given.quick) for name in given.files]
    report("gradings", "one file graded several times", given.out, DEVICES["cuda"].facts().known() | {"rows": results})
    for row in results:
        most = f"{max(row['peak_device_bytes']) / 2**30:.1f} GiB"
        print(f"{row['file']:32} {'/'.join(row['timing']):9} {row['seconds']} s, {most}, {set(row['outcomes'])}")
        for case in row["cases"]:
            print(f"    {case['case']:26} {case['scores_ns']} spread {case['spread_percent']} %  {case['doubts']}")
    return 0 if all(row["cases"] for row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
