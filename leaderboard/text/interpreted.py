"""What is shown of a grading in Triton's interpreter: everything but its speedups. Trusted; pure."""

from __future__ import annotations

from harness.verdict import Verdict


def without_speedups(result: Verdict) -> Verdict:
    """The same result, without speedups if Triton's interpreter ran the kernel: such times say nothing about speed."""
    if not result.environment.interpreted:
        return result
    benchmarks = tuple(case.model_copy(update={"baselines": ()}) for case in result.benchmarks)
    return result.model_copy(update={"speedups": (), "benchmarks": benchmarks})
