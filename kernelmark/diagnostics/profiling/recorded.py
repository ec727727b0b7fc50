"""`submit --profile`: profiles a submission whose run was just recorded, and archives the profile. Trusted.

The profile is made like that of `kernelmark profile`, of the largest benchmark case and without baselines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.judge.setup import ignore
from harness.profiling.stacks import collapse, stacks_of
from harness.verdict import Verdict
from kernelmark.diagnostics.profiling import of_one_case
from kernelmark.diagnostics.profiling.folder import TABLES, TIMES
from kernelmark.diagnostics.profiling.kernel_profile import PARTS, KernelProfile, kernel_profile
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.choice import choose_provider
from kernelmark.text.profiles import USE, use
from kernelmark.text.terminal import counted
from leaderboard.publishing.site.charts import memory
from leaderboard.record.profile import Rows, StoredProfile, archive_profile, fitted, memory_file

_LETTERS = 300  # of a line about what is missing, or of a cell
_LINES = 100
_TRACE_BYTES = 200_000


def profile_recorded(job: PreparedJob, verdict: Verdict, on_progress: OnProgress = ignore) -> str:
    """Profile a recorded run; returns a line that says where the profile is, or why there is none.

    Raises:
        UsageError: the problem has changed since.
        HarnessError: we failed.
    """
    problem, device = of_one_case(job.problem, None, job.device), job.device
    made = kernel_profile(job.submission, problem, device, choose_provider(job.settings), PARTS[device], on_progress)
    told = to_store(made, verdict, problem.benchmarks[0].name)
    if not (told.stacks or told.rows or told.tables or told.files):
        return f"no profile: {'; '.join(told.missing) or 'nothing was told'}"
    stored = fitted(told)
    path = archive_profile(job.settings.locate("archive"), job.problem.slug, job.submission.author, stored)
    missing = f"; missing or cut: {counted(len(stored.missing), 'part')}" if stored.missing else ""
    return f"profile in {os.path.relpath(path)}{missing}"


def to_store(profile: KernelProfile, verdict: Verdict, case: str) -> StoredProfile:
    """The sections that are stored, under the names that pages show.

    Long traces, the memory snapshot and Nsight Compute's report are left out: they are large, and for programs.
    """
    rows: dict[str, Rows] = {}
    stacks, tables, files = dict[str, str](), dict[str, str](), dict[str, str]()
    if (of_torch := profile.torch) is not None:
        trees = {TIMES.get(name, name): root for name, root in of_torch.stacks.items() if root.value}
        stacks = {f"{name} of three calls, µs": collapse(stacks_of(root)) for name, root in trees.items()}
        tables = {TABLES.get(name, name): text for name, text in of_torch.tables.items() if text.strip()}
        for number, trace in enumerate(of_torch.traces):
            if len(trace) <= _TRACE_BYTES:
                files[f"trace-{number}.json, for Perfetto"] = trace.decode("ascii")
        if held := [each for each in of_torch.memory if each.peak_bytes]:
            peaks = ((each.device, f"{each.peak_bytes:,}") for each in held)
            rows["Memory that PyTorch held"] = (("device", "most at once (B)"), *peaks)
            for each in held:
                files[memory_file(each.device)] = memory.written(each.points)
    if (of_nsight := profile.nsight) is not None:
        used = (tuple(cell[:_LETTERS] for cell in use(kernel)) for kernel in of_nsight.kernels)
        rows["Nsight Compute"] = (USE, *used)
        tables["Nsight Compute"] = of_nsight.details
        files["ncu.csv"] = of_nsight.table
    if profile.sanitized:
        found = ((name, each.state, each.text[:_LETTERS]) for name, each in profile.sanitized.items())
        rows["compute-sanitizer"] = (("check", "result", "details"), *found)
        files |= {f"{name}.txt": each.printed for name, each in profile.sanitized.items()}
    if profile.code is not None:
        files |= profile.code.files
        if resources := profile.code.resources:
            rows["Resources"] = tuple(resources)
    return StoredProfile(
        run=verdict.run,
        sha256=verdict.submission.sha256,
        case=case,
        stacks=stacks,
        rows=rows,
        tables=tables,
        files=files,
        missing=tuple(line[:_LETTERS] for line in _missing(profile))[:_LINES],
    )


def _missing(profile: KernelProfile) -> Iterator[str]:
    yield from (f"{name}: {why}" for name, why in profile.missing.items())
    for part in (profile.torch, profile.code):
        yield from part.unreadable if part is not None else ()
