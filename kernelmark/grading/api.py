"""Grading from Python: `kernelmark.grade` and `kernelmark.check`. Trusted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from harness.judge.setup import ignore
from harness.kinds import SandboxChoice
from harness.problem import Problem
from harness.submission import Submission
from harness.verdict import Check, Effort, Verdict
from kernelmark.grading.recorder import admit, publish
from kernelmark.grading.recorder import record as record_verdict
from kernelmark.grading.setup import ExtraFiles, OnProgress, PreparedJob
from kernelmark.project.project import Project, settings_for
from kernelmark.project.settings import DeviceChoice, Settings


def grade(
    problem: str | Path | Problem,
    submission: str | Path | Submission,
    *,
    author: str = "anonymous",
    device: DeviceChoice = "auto",
    sandbox: SandboxChoice = "auto",
    language: str = "py",
    beside: ExtraFiles = (),
    effort: Effort | None = None,
    baselines: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    record: bool = False,
    project: Project | None = None,
) -> Verdict:
    """Grade one submission: build it, run the tests, and time the benchmarks.

    The verdict's `outcome` says what the submission did wrong; only bad input and our own failures are raised.

    Args:
        problem: a problem's directory, its slug below the project's `problems`, or a loaded `Problem`.
        submission: the source itself (`str`), a file (`Path`), or a `Submission`.
        author: who wrote it; a `Submission` has its own author.
        device: "cpu", "cuda", or "auto": the project's setting, else CUDA if there is a device.
        sandbox: "docker", "bwrap", "process", or "auto": the project's setting, else the strongest that works.
        language: the language, if the submission is source.
        beside: headers that it includes, or Python modules that it imports: a list of `Path` if the submission is a
            `Path`, a dictionary from file name to source if it is source.
        effort: "quick", "default" or "thorough": the budget of every benchmark case; or "screen": stop at the first
            test that fails, and time one case only; None: the project's setting.
        baselines: names of kernels in `reference/<slug>/` to alternate with; None: the project's setting, else `eager`
            on a GPU if the problem has it, unless the effort is quick or screen.
        on_progress: called with a `harness.judge.Progress` before every step.
        record: archive the sources, append the verdict to the project's ledger and rewrite its board.
        project: the project whose problems, settings and record are used; None: that of the working directory.

    Raises:
        UsageError: the problem, the submission or a setting is wrong.
        HarnessError: we failed, twice; the verdict is unknown and nothing was recorded.
    """
    settings = settings_for(project, device=device, sandbox=sandbox, effort=effort, baselines=baselines)
    job = PreparedJob.prepare(settings, problem, submission, author=author, language=language, beside=beside)
    remark = admit(job) if record else None
    verdict = job.grade(on_progress or ignore)
    _warn_if_not_isolated(verdict, settings)
    if record:
        record_verdict(job, verdict, remark)
        publish(job, verdict)
    return verdict


def check(
    problem: str | Path | Problem,
    submission: str | Path | Submission,
    *,
    author: str = "anonymous",
    device: DeviceChoice = "auto",
    sandbox: SandboxChoice = "auto",
    language: str = "py",
    beside: ExtraFiles = (),
    on_progress: OnProgress | None = None,
    project: Project | None = None,
) -> Check:
    """Build one submission and run its tests, without times; arguments and exceptions as for `grade`."""
    settings = settings_for(project, device=device, sandbox=sandbox)
    job = PreparedJob.prepare(settings, problem, submission, author=author, language=language, beside=beside)
    result = job.check(on_progress or ignore)
    _warn_if_not_isolated(result, settings)
    return result


def _warn_if_not_isolated(result: Check, settings: Settings) -> None:
    if settings.sandbox == "auto" and not result.environment.isolated:
        what = "it ran with the rights of this process: install Docker or bubblewrap, or pass sandbox='process'"
        warnings.warn(f"not isolated: {what}", stacklevel=3)
