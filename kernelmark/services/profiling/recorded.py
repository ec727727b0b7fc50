"""`submit --profile`: profiles a submission whose run was just recorded, and archives the profile. Trusted.

The profile is made like that of `kernelmark profile`, of the largest benchmark case and without baselines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.judge.progress import ignore
from harness.profiling.stacks import collapse, stacks_of
from harness.verdict import Verdict
from kernelmark.services.choice import choose_provider
from kernelmark.services.prepared import OnProgress, PreparedJob
from kernelmark.services.profiling import of_one_case
from kernelmark.services.profiling.folder import TABLES, TIMES
from kernelmark.services.profiling.kernel_profile import KernelProfile, kernel_profile
from leaderboard.record.profile import Rows, StoredProfile, archive_profile, fitted

_LETTERS = 300  # of a line about what is missing
_LINES = 100


def profile_recorded(job: PreparedJob, verdict: Verdict, on_progress: OnProgress = ignore) -> str:
    """Profile a recorded run; returns a line that says where the profile is, or why there is none.

    Raises:
        UsageError: the problem has changed since.
        HarnessError: we failed.
    """
    problem = of_one_case(job.problem, None, job.device)
    made = kernel_profile(job.submission, problem, job.device, choose_provider(job.settings), on_progress)
    told = to_store(made, verdict, problem.benchmarks[0].name)
    if not (told.stacks or told.rows or told.tables or told.files):
        return f"no profile: {'; '.join(told.missing) or 'nothing was told'}"
    stored = fitted(told)
    path = archive_profile(job.settings.locate("archive"), job.problem.slug, job.submission.author, stored)
    missing = f", without {len(stored.missing)} parts or with less of them" if stored.missing else ""
    return f"profile in {os.path.relpath(path)}{missing}"


def to_store(profile: KernelProfile, verdict: Verdict, case: str) -> StoredProfile:
    """The sections that are stored, under the names that pages show; traces are left out for their size."""
    rows: dict[str, Rows] = {}
    stacks, tables = dict[str, str](), dict[str, str]()
    if (of_torch := profile.torch) is not None:
        trees = {TIMES.get(name, name): root for name, root in of_torch.stacks.items() if root.value}
        stacks = {f"{name} of three calls, µs": collapse(stacks_of(root)) for name, root in trees.items()}
        tables = {TABLES.get(name, name): text for name, text in of_torch.tables.items() if text.strip()}
        if (peak := of_torch.peak_bytes) is not None:
            rows["Memory"] = (("what", "bytes"), ("the most that PyTorch held during a call", f"{peak:,}"))
    if profile.code is not None and (resources := profile.code.resources):
        rows["Resources"] = tuple(resources)
    return StoredProfile(
        run=verdict.run,
        sha256=verdict.submission.sha256,
        case=case,
        stacks=stacks,
        rows=rows,
        tables=tables,
        files=profile.code.files if profile.code is not None else {},
        missing=tuple(line[:_LETTERS] for line in _missing(profile))[:_LINES],
    )


def _missing(profile: KernelProfile) -> Iterator[str]:
    if profile.why_no_torch:
        yield f"torch.profiler: {profile.why_no_torch}"
    if profile.why_no_code:
        yield f"code: {profile.why_no_code}"
    for part in (profile.torch, profile.code):
        yield from part.unreadable if part is not None else ()
