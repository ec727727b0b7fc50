"""Gradings by the real judge on the CPU, of problems and sources that a test writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import judge, sandbox
from harness.problem import Problem, load
from harness.submission import Submission
from harness.verdict import Check, SandboxName, Verdict


def problem_folder(folder: Path, toml: str, reference: str) -> Path:
    """Write the files of a problem into a folder, which is made if it is not there, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.toml").write_text(toml)
    (folder / "reference.py").write_text(reference)
    return folder


def written(folder: Path, toml: str, reference: str) -> Problem:
    """A problem of these files; the folder's name is the slug."""
    return load(problem_folder(folder, toml, reference))


def submission(source: str, language: str = "py") -> Submission:
    return Submission.of(source, language, author="tester")  # type: ignore[arg-type]


def setup(problem: Problem, source: str | Submission, within: SandboxName = "process", **options: Any) -> judge.Setup:
    """One submission to grade, Python if it is given as text."""
    kernel = submission(source) if isinstance(source, str) else source
    return judge.Setup(problem, kernel, **{"provider": sandbox.provider(within), "device": "cpu", **options})


def checked(problem: Problem, source: str | Submission, within: SandboxName = "process", **options: Any) -> Check:
    return judge.check(setup(problem, source, within, **options))


def graded(problem: Problem, source: str | Submission, within: SandboxName = "process", **options: Any) -> Verdict:
    """With times, as few as there can be unless an effort is given."""
    return judge.grade(setup(problem, source, within, **{"effort": "quick", **options}))
