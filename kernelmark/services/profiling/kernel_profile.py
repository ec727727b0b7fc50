"""Profiles one kernel, a submission or a baseline; torch is imported only then. Trusted."""

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
    from harness.profiling.code import CompiledCode
    from harness.profiling.torch_profile import TorchProfile


@dataclass
class KernelProfile:
    """What there is to see of a kernel; a part that its process did not survive says why it is missing."""

    name: str
    torch: TorchProfile | None = None
    why_no_torch: str = ""
    code: CompiledCode | None = None
    why_no_code: str = ""


def kernel_profile(
    submission: Submission, problem: Problem, device: DeviceKind, provider: Provider, on_progress: OnProgress
) -> KernelProfile:
    """Profile the problem's one benchmark.

    Raises:
        HarnessError: we failed.
    """
    from harness.judge.correctness.graded_case import GradedCase
    from harness.judge.session import SubmissionFault
    from harness.judge.timing.device_lock import lock_alone
    from harness.languages import LANGUAGES
    from harness.problem.reference import Reference
    from harness.profiling.code import compiled_code
    from harness.profiling.torch_profile import torch_profile

    [benchmark] = problem.benchmarks
    case = GradedCase(problem, Reference.load(problem), device, problem.resolve(benchmark))
    name = f"baseline {submission.name}" if submission.author == "baseline" else submission.name
    made = KernelProfile(name)

    def report(what: str) -> None:
        on_progress(Progress(Stage.TEST, 0, 1, f"{name}: {what}"))

    with lock_alone(device, lambda: report("waiting: another grading is using this device")):
        if device in LANGUAGES[submission.language].devices:
            report("torch.profiler")
            try:
                made.torch = torch_profile(submission, case, provider)
            except SubmissionFault as fault:
                made.why_no_torch = fault.message
        report("its code")
        try:
            made.code = compiled_code(submission, case, provider)
        except SubmissionFault as fault:
            made.why_no_code = fault.message
    return made
