"""Profiles one kernel, a submission or a baseline; torch is imported only then. Trusted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from harness.errors import UsageError
from harness.judge import Progress
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Stage
from kernelmark.grading.setup import OnProgress

if TYPE_CHECKING:
    from harness.audit.tools import ToolReport
    from harness.profiling.code import CompiledCode
    from harness.profiling.nsight import NsightProfile
    from harness.profiling.torch_profile import TorchProfile
    from harness.wire import commands

Part = Literal["torch", "stacks", "memory", "ncu", "code", "sanitize"]
OF_TORCH: tuple[commands.ProfilePart, ...] = ("torch", "stacks", "memory")
PARTS: dict[DeviceKind, tuple[Part, ...]] = {
    "cpu": (*OF_TORCH, "code"),
    "cuda": (*OF_TORCH, "ncu", "code", "sanitize"),
}
"""What there is to profile on a device, in the order in which it is done."""


@dataclass
class KernelProfile:
    """What there is to see of a kernel."""

    name: str
    torch: TorchProfile | None = None
    nsight: NsightProfile | None = None
    code: CompiledCode | None = None
    sanitized: dict[str, ToolReport] = field(default_factory=dict)
    """By compute-sanitizer's check, such as memcheck."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a part that was wanted is not there, in a line: its process did not survive it, or a tool is missing."""


def kernel_profile(
    submission: Submission,
    problem: Problem,
    device: DeviceKind,
    provider: Provider,
    parts: Collection[Part],
    on_progress: OnProgress,
) -> KernelProfile:
    """Profile the problem's one benchmark, as far as the kernel runs on this device.

    Raises:
        HarnessError: we failed.
    """
    from harness.audit.run import audit
    from harness.audit.tools import sanitizers
    from harness.judge.correctness.graded_case import GradedCase
    from harness.judge.correctness.oracle import load_reference
    from harness.judge.timing.device_lock import lock_alone
    from harness.languages import LANGUAGES
    from harness.profiling import nsight
    from harness.profiling.code import compiled_code
    from harness.profiling.torch_profile import torch_profile

    [benchmark] = problem.benchmarks
    reference = load_reference(problem, provider, device)
    case = GradedCase(problem, reference, device, problem.resolve(benchmark))
    baseline = submission.author == "baseline"
    made = KernelProfile(f"baseline {submission.name}" if baseline else submission.name)
    runs = device in LANGUAGES[submission.language].devices

    def report(what: str) -> None:
        on_progress(Progress(Stage.TEST, 0, 1, f"{made.name}: {what}"))

    with closing(reference), lock_alone(device, lambda: report("waiting: another grading is using this device")):
        if runs and (asked := [each for each in OF_TORCH if each in parts]):
            with _part(made, "torch.profiler", report):
                made.torch = torch_profile(submission, case, provider, asked)
        if runs and "ncu" in parts:
            with _part(made, "Nsight Compute", report):
                made.nsight = nsight.profile(submission, case, provider)
        if "code" in parts:
            with _part(made, "compiled code", report):
                made.code = compiled_code(submission, case, provider)
        if runs and "sanitize" in parts and not baseline:
            with _part(made, "compute-sanitizer", report):
                for tool in sanitizers():
                    report(tool.name)
                    made.sanitized[tool.name] = audit(problem, submission, tool, provider=provider, device=device)
    return made


@contextmanager
def _part(made: KernelProfile, name: str, report: Callable[[str], None]) -> Iterator[None]:
    """Note why a part is missing, if the submission or a tool prevents it."""
    from harness.judge.session import SubmissionFault
    from harness.profiling.nsight import NothingMeasured

    report(name)
    try:
        yield
    except SubmissionFault as fault:
        made.missing[name] = fault.message
    except (NothingMeasured, UsageError) as error:
        made.missing[name] = str(error)
