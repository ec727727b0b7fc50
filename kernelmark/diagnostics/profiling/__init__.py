"""`kernelmark profile`: where the time of one case goes. Trusted.

The times and the kernels are measured by a grading of this case alone. Everything else (torch.profiler, Nsight Compute,
compute-sanitizer, compiled code) comes afterwards from other sandboxes, so that it cannot affect the times. The
submission could forge it, and it is labelled as such.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SubmissionError, UsageError, nearest
from harness.judge.setup import ignore
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import DeviceKind, Verdict
from kernelmark.diagnostics.profiling.kernel_profile import PARTS, KernelProfile, Part, kernel_profile
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.choice import choose_provider
from kernelmark.project.problems import find_baselines, find_problem
from kernelmark.project.settings import Settings


@dataclass(frozen=True)
class SubmissionProfile:
    """A case's grading, and the profiles of the submission and its baselines."""

    problem: str
    case: str
    verdict: Verdict | None
    """None if the file cannot run on this machine; then only its code was collected."""
    profiles: tuple[KernelProfile, ...]
    """Empty if it was not accepted."""


def profile(
    settings: Settings,
    problem: str,
    files: Sequence[Path],
    case: str | None,
    parts: Collection[Part] = (),
    on_progress: OnProgress = ignore,
) -> SubmissionProfile:
    """Grade one benchmark case, the largest if none is named, and profile it and the settings' baselines.

    Args:
        files: the submission's own, then those beside it.
        parts: () for all that there are on the device.

    Raises:
        UsageError: the problem, the case, a part or the file is wrong.
        HarnessError: we failed.
    """
    found = find_problem(settings, problem)
    given = PreparedJob.prepare(settings, found, files[0], author=settings.author_or_default(), beside=files[1:])
    device = given.device
    if missing := [each for each in parts if each not in PARTS[device]]:
        raise UsageError(f"--{missing[0]}", f"needs a GPU, and this profile is of the device {device}")
    job = PreparedJob(settings, of_one_case(found, case, device), given.submission)
    [benchmark] = job.problem.benchmarks
    verdict = job.grade(on_progress) if device in LANGUAGES[given.submission.language].devices else None
    if verdict is not None and verdict.score is None:
        return SubmissionProfile(found.slug, benchmark.name, verdict, ())
    provider = choose_provider(settings)
    kernels: list[Submission] = [given.submission, *find_baselines(settings, found, device)]
    wanted = parts or PARTS[device]
    profiles = tuple(kernel_profile(each, job.problem, device, provider, wanted, on_progress) for each in kernels)
    return SubmissionProfile(found.slug, benchmark.name, verdict, profiles)


def of_one_case(problem: Problem, name: str | None, device: DeviceKind) -> Problem:
    """The problem with one of its benchmarks, the largest if none is named.

    Raises:
        UsageError: it has no such benchmark.
    """
    cases = {each.name: each for each in problem.benchmarks if device in each.devices}
    if not cases:
        raise SubmissionError(problem.slug, f"has no benchmark for the device {device}", "use another --device")
    if name is not None and name not in cases:
        raise UsageError(f"case {name!r}", f"is not a benchmark of {problem.slug}", nearest(name, list(cases)))
    chosen = cases[name] if name else max(cases.values(), key=lambda each: problem.resolve(each).minimum_bytes)
    return problem.model_copy(update={"benchmarks": (chosen,)})
