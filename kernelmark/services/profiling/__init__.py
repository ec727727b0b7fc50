"""`kernelmark profile`: where the time of one case goes. Trusted.

The times and the kernels are measured by a grading of this case alone. What torch.profiler says comes from a sandbox of
its own afterwards, so that profiling changes no time; it is the submission's own word, and is shown as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import SubmissionError, UsageError, nearest
from harness.judge.progress import ignore
from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import DeviceKind, Verdict
from kernelmark.services.choice import choose_provider
from kernelmark.services.prepared import OnProgress, PreparedJob
from kernelmark.services.problems import find_baselines, find_problem
from kernelmark.services.profiling.torch_profiles import Profiled, profiled
from kernelmark.services.settings import Settings


@dataclass(frozen=True)
class Profile:
    """A case's grading, and the profiles of the submission and its baselines; none if it was not accepted."""

    case: str
    verdict: Verdict
    profiles: tuple[Profiled, ...]


def profile(
    settings: Settings, problem: str, file: Path, case: str | None, on_progress: OnProgress = ignore
) -> Profile:
    """Grade one benchmark case, the largest if none is named, and profile it and the settings' baselines.

    Raises:
        UsageError: the problem, the case or the file is wrong.
        HarnessError: we failed.
    """
    found = find_problem(settings, problem)
    given = PreparedJob.prepare(settings, found, file, author=settings.author_or_default())
    device = given.device
    job = PreparedJob(settings, _of_one_case(found, case, device), given.submission)
    verdict = job.grade(on_progress)
    [benchmark] = job.problem.benchmarks
    if verdict.score is None:
        return Profile(benchmark.name, verdict, ())
    provider = choose_provider(settings)
    kernels: list[Submission] = [given.submission, *find_baselines(settings, found, device)]
    profiles = tuple(profiled(each, job.problem, device, provider, on_progress) for each in kernels)
    return Profile(benchmark.name, verdict, profiles)


def _of_one_case(problem: Problem, name: str | None, device: DeviceKind) -> Problem:
    cases = {each.name: each for each in problem.benchmarks if device in each.devices}
    if not cases:
        raise SubmissionError(problem.slug, f"has no benchmark for the device {device}", "use another --device")
    if name is not None and name not in cases:
        raise UsageError(f"case {name!r}", f"is not a benchmark of {problem.slug}", nearest(name, list(cases)))
    chosen = cases[name] if name else max(cases.values(), key=lambda each: problem.resolve(each).minimum_bytes)
    return problem.model_copy(update={"benchmarks": (chosen,)})
