"""`submit --profile`: profiles a submission whose run was just recorded, and archives the profile. Trusted.

The profile is made like that of `kernelmark profile`, of the largest benchmark case and without baselines.
"""

from __future__ import annotations

import os

from harness.judge.setup import ignore
from harness.profiling.stacks import collapse, stacks_of
from harness.verdict import Verdict
from kernelmark.diagnostics.profiling import of_one_case
from kernelmark.diagnostics.profiling.kernel_profile import KernelProfile, kernel_profile
from kernelmark.diagnostics.profiling.views import parts
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.choice import choose_provider
from kernelmark.text.terminal import counted
from leaderboard.record.profile import Rows, StoredProfile, archive_profile, fitted

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
    """The sections as they are kept, under the names that pages show."""
    sections, rows = list(profile.sections()), dict[str, Rows]()
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
