"""Runs under Nsight Compute: `python -m benchmarks.accuracy.one NAME...` makes a few calls of each workload.

Only those calls are in the profiled range. A kernel that no workload has precedes them, so that the report can be
divided. `profilers.ncu` starts this program.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.accuracy.workloads import find, globaltimer_step_ns

CALLS = 3
MARK = "smallest_step"  # the kernel in kernels/globaltimer.cu


def main(names: list[str]) -> None:
    globaltimer_step_ns()  # compiles outside the profiled range
    for name in names:
        bound = find(name).bind(CALLS)
        bound(0)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        globaltimer_step_ns()
        for k in range(CALLS):
            bound(k)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        bound.check(CALLS - 1)
        del bound
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1:])
