"""kernelmark grades GPU kernels: `grade` tests and times one from outside its process, `check` tests it.

What a hostile kernel can still gain is listed in docs/threat-model.md, under "What is not stopped". The names below are
the public Python API. They are imported on first use, so `import kernelmark` costs nothing; torch is imported when a
grading starts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.errors import (
        DeviceError,
        HarnessError,
        JobTimeoutError,
        KernelmarkError,
        LedgerError,
        ProblemError,
        SandboxError,
        SettingsError,
        SubmissionError,
        UsageError,
    )
    from harness.problem import Problem
    from harness.submission import Submission
    from harness.verdict import Check, Outcome, Verdict
    from kernelmark.grading.api import check, grade
    from kernelmark.grading.fleet import Fleet, Job, JobResult
    from kernelmark.grading.reward import RewardParts, reward, reward_parts
    from kernelmark.project.project import Project

__version__ = "0.1.0"

__all__ = [
    "Check",
    "DeviceError",
    "Fleet",
    "HarnessError",
    "Job",
    "JobResult",
    "JobTimeoutError",
    "KernelmarkError",
    "LedgerError",
    "Outcome",
    "Problem",
    "ProblemError",
    "Project",
    "RewardParts",
    "SandboxError",
    "SettingsError",
    "Submission",
    "SubmissionError",
    "UsageError",
    "Verdict",
    "check",
    "grade",
    "reward",
    "reward_parts",
]

_HOMES = {
    "harness.problem": ("Problem",),
    "harness.submission": ("Submission",),
    "harness.verdict": ("Check", "Outcome", "Verdict"),
    "kernelmark.grading.api": ("check", "grade"),
    "kernelmark.grading.fleet": ("Fleet", "Job", "JobResult"),
    "kernelmark.grading.reward": ("RewardParts", "reward", "reward_parts"),
    "kernelmark.project.project": ("Project",),
}


if not TYPE_CHECKING:  # a type checker would take a misspelt name for one of these

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'kernelmark' has no attribute {name!r}")
        home = next((module for module, names in _HOMES.items() if name in names), "harness.errors")
        return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
