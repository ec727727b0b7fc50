"""Profiles one kernel, a submission or a baseline; torch is imported only then. Trusted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.judge import Progress
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Stage
from kernelmark.diagnostics.profiling.views import VIEWS, Part, ViewRequest, ViewSection
from kernelmark.grading.setup import OnProgress

if TYPE_CHECKING:
    from harness.audit.tools import ToolReport
    from harness.profiling.code import CompiledCode
    from harness.profiling.nsight import NsightProfile
    from harness.profiling.torch_profile import TorchProfile


@dataclass
class KernelProfile:
    """The results of the views of a kernel."""

    name: str
    torch: TorchProfile | None = None
    nsight: NsightProfile | None = None
    code: CompiledCode | None = None
    sanitized: dict[str, ToolReport] = field(default_factory=dict)
    """By compute-sanitizer's check, such as memcheck."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a view that was wanted is not there, in a line: its process did not survive it, or a tool is missing."""

    @property
    def unreadable(self) -> list[str]:
        """What came and could not be read, one line each."""
        return [line for part in (self.torch, self.code) if part is not None for line in part.unreadable]

    def sections(self) -> Iterator[ViewSection]:
        """What there is to see, in the order in which it is shown."""
        for view in VIEWS:
            if (result := getattr(self, view.field)) is not None:
                yield from view.sections(result)


def kernel_profile(
    submission: Submission,
    problem: Problem,
    device: DeviceKind,
    provider: Provider,
    parts: Collection[Part],
    on_progress: OnProgress,
) -> KernelProfile:
    """Make the views that these parts ask for, of the problem's one benchmark, as far as the device runs the kernel.

    Raises:
        HarnessError: we failed.
    """
    from harness.judge.correctness.graded_case import GradedCase
    from harness.judge.correctness.oracle import load_reference
    from harness.judge.session import SubmissionFault
    from harness.judge.timing.device_lock import lock_alone
    from harness.languages import LANGUAGES
    from harness.profiling.nsight import NothingMeasured

    [benchmark] = problem.benchmarks
    reference = load_reference(problem, provider, device)
    case = GradedCase(problem, reference, device, problem.resolve(benchmark))
    baseline = submission.author == "baseline"
    made = KernelProfile(f"baseline {submission.name}" if baseline else submission.name)
    runs = device in LANGUAGES[submission.language].devices

    def report(what: str) -> None:
        on_progress(Progress(Stage.TEST, 0, 1, f"{made.name}: {what}"))

    with closing(reference), lock_alone(device, lambda: report("waiting: another grading is using this device")):
        for view in VIEWS:
            wanted = [part for part in view.parts if part in parts]
            if not wanted or (view.calls and not runs) or (baseline and not view.baselines):
                continue
            report(view.name)
            try:
                setattr(made, view.field, view.make(ViewRequest(submission, case, provider, wanted, report)))
            except SubmissionFault as fault:
                made.missing[view.name] = fault.message
            except (NothingMeasured, UsageError) as error:
                made.missing[view.name] = str(error)
    return made
