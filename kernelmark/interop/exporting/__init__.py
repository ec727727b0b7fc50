"""Writes submissions in the forms that other projects take: one file that runs without kernelmark. Trusted.

`kernelmark export` calls it. The submission is read as text, and never run. A new form is a module with a `FORM`, and
a line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.errors import UsageError, nearest
from harness.problem import Problem
from harness.submission import Submission
from kernelmark.interop.exporting import kernelbench, popcorn, source
from kernelmark.interop.exporting.request import Exported, Form, Request

FORMS: Mapping[str, Form] = {"popcorn": popcorn.FORM, "kernelbench": kernelbench.FORM}


def export(
    problem: Problem,
    submission: Submission,
    form: str,
    *,
    case: str | None = None,
    leaderboard: str | None = None,
    gpus: Sequence[str] = (),
) -> Exported:
    """A submission of a problem as a file in another form.

    Args:
        case: the name of a test or benchmark, for parameters that no input's shape tells.
        leaderboard: where it is handed in; by default the one that the problem came from.
        gpus: the GPUs that it is to run on there.

    Raises:
        UsageError: the form or the case is unknown, or the problem was not imported from the project that has the form.
    """
    if form not in FORMS:
        raise UsageError("--form", f"{form!r} is not known", nearest(form, FORMS))
    project = FORMS[form].project
    if problem.foreign is None or problem.foreign.form != project:
        remedy = f"import the problem with `kernelmark import {project}`, and grade the submission there first"
        raise UsageError(problem.slug, f"was not imported from {project}, which has no such problem", remedy)
    if problem.call.style != FORMS[form].style or problem.scalars:
        raise UsageError(problem.slug, "is not called as it was when it was imported", "import it again with --force")
    if not FORMS[form].has_boards and (leaderboard is not None or gpus):
        raise UsageError("--leaderboard" if gpus == () else "--gpu", f"{form} has none", "leave it out")
    cases = {each.name: each for each in (*problem.tests, *problem.benchmarks)}
    if case is not None and case not in cases:
        raise UsageError("--case", f"{case!r} is not a test or benchmark of {problem.slug}", nearest(case, cases))
    chosen = None if case is None else cases[case]
    request = Request(problem, submission, chosen, leaderboard, tuple(gpus))
    source.check(request)
    exported = FORMS[form].write(request)
    if submission.language != "cpp":
        return exported
    return Exported(exported.text, (*exported.warnings, "C++ runs on the CPU, and is handed tensors of a GPU there"))


__all__ = ["FORMS", "Exported", "export"]
