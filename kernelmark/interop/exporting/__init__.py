"""Writes submissions in the forms that other projects take: one file that runs without kernelmark. Trusted.

`kernelmark export` calls it. The submission is read as text, and never run. A new format is a module with a `FORMAT`,
and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.errors import UsageError, nearest
from harness.problem import Problem
from harness.submission import Submission
from kernelmark.interop.exporting import kernelbench, popcorn
from kernelmark.interop.exporting.request import Exported, ExportFormat, Request

FORMATS: Mapping[str, ExportFormat] = {"popcorn": popcorn.FORMAT, "kernelbench": kernelbench.FORMAT}


def export(
    problem: Problem,
    submission: Submission,
    form: str,
    *,
    case: str | None = None,
    leaderboard: str | None = None,
    gpus: Sequence[str] = (),
) -> Exported:
    """A submission of a problem as a file that another project takes; `form` is a key of `FORMATS`.

    Args:
        case: the name of a test or benchmark, for parameters that no input's shape determines.
        leaderboard: where it is submitted; by default the one that the problem came from.
        gpus: the GPUs that it is to run on there.

    Raises:
        UsageError: the format or the case is unknown, or the problem was not imported from that project.
    """
    if form not in FORMATS:
        raise UsageError("--form", f"{form!r} is not known", nearest(form, FORMATS))
    wanted = FORMATS[form]
    if problem.foreign is None or problem.foreign.form != wanted.project:
        remedy = f"import the problem with `kernelmark import {wanted.project}`, and grade the submission there first"
        raise UsageError(problem.slug, f"was not imported from {wanted.project}, which has no such problem", remedy)
    if problem.call.style != wanted.style or problem.scalars:
        raise UsageError(problem.slug, "is not called as it was when it was imported", "import it again with --force")
    if not wanted.has_boards and (leaderboard is not None or gpus):
        raise UsageError("--leaderboard" if gpus == () else "--gpu", f"{form} has none", "leave it out")
    cases = {known.name: known for known in (*problem.tests, *problem.benchmarks)}
    if case is not None and case not in cases:
        raise UsageError("--case", f"{case!r} is not a test or benchmark of {problem.slug}", nearest(case, cases))
    request = Request(problem, submission, None if case is None else cases[case], leaderboard, tuple(gpus))
    request.check_source()
    exported = wanted.write(request)
    if submission.language != "cpp":
        return exported
    return Exported(exported.text, (*exported.warnings, "C++ runs on the CPU, and gets tensors of a GPU there"))
