"""What Nsight Compute is started on: `python -m benchmarks.accuracy.one NAME...` makes a few calls of each workload.

Only those calls lie in the profiled range. Before them comes a kernel that no workload has, so that the report can be
divided. `profilers.ncu` starts it.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.accuracy.workloads import find, globaltimer_step_ns

CALLS = 3
MARK = "smallest_step"  # the kernel in kernels/globaltimer.cu


def main(names: list[str]) -> None:
    globaltimer_step_ns()  # compiles, outside the range
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
