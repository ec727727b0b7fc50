"""torch.profiler on one kernel, a submission or a baseline; torch is imported when it starts. Trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.judge import Progress
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Stage
from kernelmark.services.prepared import OnProgress

if TYPE_CHECKING:
    from harness.profiling.torch_profile import TorchProfile


@dataclass(frozen=True)
class Profiled:
    """What torch.profiler says of a kernel; or, where its process failed under it, why there is nothing."""

    name: str
    torch: TorchProfile | None
    why_not: str = ""


def profiled(
    submission: Submission, problem: Problem, device: DeviceKind, provider: Provider, on_progress: OnProgress
) -> Profiled:
    """Profile the problem's one benchmark.

    Raises:
        HarnessError: we failed.
    """
    from harness.judge.correctness.graded_case import GradedCase
    from harness.judge.session import SubmissionFault
    from harness.judge.timing.device_lock import lock_alone
    from harness.problem.reference import Reference
    from harness.profiling.torch_profile import torch_profile

    [benchmark] = problem.benchmarks
    case = GradedCase(problem, Reference.load(problem), device, problem.resolve(benchmark))

    def report(what: str) -> None:
        on_progress(Progress(Stage.TEST, 0, 1, f"{submission.name}: {what}"))

    with lock_alone(device, lambda: report("waiting: another grading is using this device")):
        report("torch.profiler")
        try:
            return Profiled(submission.name, torch_profile(submission, case, provider))
        except SubmissionFault as fault:
            return Profiled(submission.name, None, fault.message)
