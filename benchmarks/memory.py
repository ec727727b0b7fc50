"""How much of a GPU's memory each step of a grading takes, over all processes, and how much of it the judge's PyTorch.

    python -m benchmarks.memory vector_add/cuda.cu:none softmax/triton.py attention/triton.py
    python -m benchmarks.memory --problems SCRATCH/problems --reference SCRATCH/reference KERNELBENCH_1_26/eager.py

A file can name its baseline after a colon (default: eager). The second line grades imported problems, as
`benchmarks.foreign references` leaves them in its scratch folder. `own` are the inputs, the outputs and the truth of
the largest case; the peak is NVML's use of the device beyond that before the grading, sampled every 10 ms, and
`judge` what the judge's PyTorch held at most during the step, with what it keeps of freed tensors.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.gradings import ROOT, PeakMemory
from benchmarks.scratch import report
from harness.device import DEVICES
from harness.judge import Progress
from harness.problem import Problem, ResolvedCase
from harness.problem.dtypes import DTYPES
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import Settings

GIB = 1 << 30
_TRUTH_BYTES = {"float": 8, "scale": 8, "complex": 16}


class Steps:
    """The peaks of the steps of one grading; `begin` is called with each step's progress."""

    def __init__(self) -> None:
        self._memory = PeakMemory()
        self.rows: list[dict[str, Any]] = []
        self._step: tuple[str, str, float] | None = None

    def begin(self, progress: Progress) -> None:
        """End the step before, and start to measure the next."""
        self._end()
        self._step = (progress.stage.value, progress.label, time.monotonic())

    def _end(self) -> None:
        import torch

        most = self._memory.since_last()
        if self._step is not None:
            stage, label, began = self._step
            judge = torch.cuda.max_memory_reserved() if torch.cuda.is_initialized() else 0
            seconds = round(time.monotonic() - began, 2)
            row = {"stage": stage, "step": label, "seconds": seconds, "peak_bytes": most, "judge_bytes": judge}
            self.rows.append(row)
        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()

    def stop(self) -> int:
        """The peak of the whole grading."""
        self._end()
        return self._memory.stop()


def own_bytes(case: ResolvedCase, *, exact: bool) -> int:
    """The inputs, the outputs and the truth of a case; a reference that is not exact answers in the outputs' dtypes."""
    total = 0
    for tensor in case.tensors:
        elements, info = math.prod(tensor.shape), DTYPES[tensor.dtype]
        total += elements * info.size_bytes
        if tensor.role != "input":
            total += elements * (_TRUTH_BYTES.get(info.family, info.size_bytes) if exact else info.size_bytes)
    return total


def largest(problem: Problem) -> int:
    """The most that the tensors of one of its cases on a GPU take."""
    cases = [case for case in (*problem.tests, *problem.benchmarks) if "cuda" in case.devices and not case.draw]
    return max(own_bytes(problem.resolve(case), exact=problem.foreign is None) for case in cases)


def graded(name: str, effort: str) -> dict[str, Any]:
    """Grade one file; its outcome, seconds and peaks."""
    import kernelmark

    path, _, baseline = name.partition(":")
    slug, _, kernel = path.partition("/")
    problems = Path(os.environ.get("KERNELMARK_PROBLEMS", ROOT / "problems"))
    reference = Path(os.environ.get("KERNELMARK_REFERENCE", ROOT / "reference"))
    problem = find_problem(Settings.load(), problems / slug)
    steps, began = Steps(), time.monotonic()
    outcome, message = "error", ""
    try:
        verdict = kernelmark.grade(
            problem,
            reference / slug / kernel,
            device="cuda",
            effort=effort,  # type: ignore[arg-type]
            baselines=[] if baseline == "none" else [baseline or "eager"],
            on_progress=steps.begin,
        )
        outcome, message = verdict.outcome.value, verdict.message
    except kernelmark.HarnessError as error:
        message = str(error)
    peak = steps.stop()
    return {
        "file": name,
        "outcome": outcome,
        "message": message[:300],
        "seconds": round(time.monotonic() - began, 1),
        "own_bytes": largest(problem),
        "peak_bytes": peak,
        "steps": steps.rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="PROBLEM/KERNEL[:BASELINE]")
    parser.add_argument("--effort", choices=("screen", "quick", "default", "thorough"), default="quick")
    parser.add_argument("--problems", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "memory.json")
    given = parser.parse_args()
    for name, folder in (("PROBLEMS", given.problems), ("REFERENCE", given.reference)):
        if folder is not None:
            os.environ[f"KERNELMARK_{name}"] = str(folder.resolve())
    rows = []
    for name in given.files:
        rows.append(graded(name, given.effort))
        print(f"{name}: {rows[-1]['outcome']}", file=sys.stderr, flush=True)
    report("memory", "the device's memory in each step", given.out, DEVICES["cuda"].facts().known() | {"rows": rows})
    for row in rows:
        own, peak = row["own_bytes"] / GIB, row["peak_bytes"] / GIB
        beyond = f"own {own:.1f} GiB, peak {peak:.1f} GiB (own + {peak - own:.1f})"
        print(f"{row['file']:32} {row['outcome']}, {row['seconds']} s, {beyond} {row['message']}")
        for step in sorted(row["steps"], key=lambda step: -step["peak_bytes"])[:6]:
            peaks = f"{step['peak_bytes'] / GIB:6.1f} GiB, judge {step['judge_bytes'] / GIB:5.1f} GiB"
            print(f"    {step['stage']:8} {step['step'][:40]:40} {peaks}, {step['seconds']} s")
    return 0 if all(row["outcome"] == "accepted" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
