"""`kernelmark profile`: where the time of one case goes. Trusted.

The times and the kernels are measured by a grading of this case alone. Everything else (torch.profiler, Nsight Compute,
compute-sanitizer, compiled code) comes afterwards from other sandboxes, so that it cannot affect the times. The
submission could forge it, and it is labelled as such.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.judge.setup import ignore
from harness.languages import LANGUAGES
from harness.profiling.stacks import collapse, stacks_of
from harness.verdict import Verdict
from harness.wire import commands
from kernelmark.diagnostics.profiling.views import KernelProfile, ViewName, kernel_profile, parts
from kernelmark.diagnostics.profiling.views import parts as parts_of
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.choice import choose_provider
from kernelmark.project.problems import find_baselines, find_problem, of_one_case
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import counted
from leaderboard.record.profile import StoredProfile, TableRows, archive_profile, fitted


@dataclass(frozen=True)
class CaseProfile:
    """The grading of one case, and the profiles of the submission and its baselines."""

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
    parts: Collection[ViewName] = (),
    on_progress: OnProgress = ignore,
    options: commands.Profile | None = None,
) -> CaseProfile:
    """Grade one benchmark case, the largest if none is named, and profile it and the settings' baselines.

    Args:
        files: the submission's own, then the other files.
        parts: () for all parts that the device has.
        options: of torch.profiler; None: the defaults.

    Raises:
        UsageError: the problem, the case, a part or the file is wrong.
        HarnessError: we failed.
    """
    found = find_problem(settings, problem)
    prepared = PreparedJob.prepare(settings, found, files[0], author=settings.author_or_default(), beside=files[1:])
    device = prepared.device
    if missing := [part for part in parts if part not in parts_of(device)]:
        raise UsageError(f"--{missing[0]}", f"needs a GPU, and this profile is of the device {device}")
    job = PreparedJob(settings, of_one_case(found, case, device), prepared.submission)
    [benchmark] = job.problem.benchmarks
    verdict = job.grade(on_progress) if device in LANGUAGES[prepared.submission.language].devices else None
    if verdict is not None and verdict.score is None:
        return CaseProfile(found.slug, benchmark.name, verdict, ())
    provider = choose_provider(settings)
    kernels = [(prepared.submission, job.problem)]
    kernels += [(kernel, job.problem.of_baseline(kernel.stem)) for kernel in find_baselines(settings, found, device)]
    wanted = parts or parts_of(device)
    profiles = tuple(kernel_profile(*kernel, device, provider, wanted, on_progress, options) for kernel in kernels)
    return CaseProfile(found.slug, benchmark.name, verdict, profiles)


_LETTERS = 300  # of a line about what is missing, or of a cell
_LINES = 100


def profile_recorded(job: PreparedJob, verdict: Verdict, on_progress: OnProgress = ignore) -> str:
    """Profile a recorded run; returns a line that says where the profile is, or why there is none.

    Raises:
        UsageError: the problem has changed since.
        HarnessError: we failed.
    """
    problem, device = of_one_case(job.problem, None, job.device), job.device
    made = kernel_profile(job.submission, problem, device, choose_provider(job.settings), parts(device), on_progress)
    whole = to_store(made, verdict, problem.benchmarks[0].name)
    if not (whole.stacks or whole.rows or whole.tables or whole.files):
        return f"no profile: {'; '.join(whole.missing) or 'nothing was reported'}"
    stored = fitted(whole)
    path = archive_profile(job.settings.locate("archive"), job.problem.slug, job.submission.author, stored)
    missing = f"; missing or cut: {counted(len(stored.missing), 'part')}" if stored.missing else ""
    return f"profile in {os.path.relpath(path)}{missing}"


def to_store(profile: KernelProfile, verdict: Verdict, case: str) -> StoredProfile:
    """The sections to store, under the names that pages show."""
    sections, rows = list(profile.sections()), dict[str, TableRows]()
    for section in sections:
        if section.rows:
            rows[section.title] = tuple(tuple(cell[:_LETTERS] for cell in row) for row in section.rows)
    missing = [*(f"{name}: {why}" for name, why in profile.missing.items()), *profile.unreadable]
    return StoredProfile(
        run=verdict.run,
        sha256=verdict.submission.sha256,
        case=case,
        stacks={name: collapse(stacks_of(root)) for section in sections for name, root in section.stacks.items()},
        rows=rows,
        tables={section.title: section.text for section in sections if section.text},
        files={name: text for section in sections for name, text in section.kept.items()},
        missing=tuple(line[:_LETTERS] for line in missing)[:_LINES],
    )
