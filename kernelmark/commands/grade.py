"""Grading for a course or a competition, and the marks that follow from it: `kernelmark grade` and `marks`.

`organizers` adds them to its commands. Trusted. Slow imports are done by the commands that need them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.errors import UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import device_option, form_option, jobs_option, load_settings, sandbox_option
from kernelmark.text.printing import print_text

_csv = click.option(
    "--csv", "marks", type=click.Path(path_type=Path, dir_okay=False), help="Write a row for each author here."
)
_feedback = click.option(
    "--feedback",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a file for each author here: DIR/AUTHOR.txt, or named so that Moodle takes it back.",
)


@click.command()
@click.argument("problem", required=False)
@click.argument("handins", required=False, type=click.Path(path_type=Path))
@click.option("--changed", "base", metavar="BASE", help="Grade the submissions that changed since this commit.")
@click.option(
    "--head", default="HEAD", show_default=True, help="The branch with the submissions; it need not be checked out."
)
@click.option("--only", metavar="AUTHOR", help="Refuse a branch that changes anything outside this author's folders.")
@click.option(
    "--allow-other",
    is_flag=True,
    help="With --only: list other files and grade. The record, problems, settings, others' submissions and hidden "
    "files such as .github/ stay refused.",
)
@click.option("--late", metavar="ORGANIZER", help="As for `submit`.")
@click.option(
    "--handed-in",
    metavar="WHEN",
    help="When HANDINS were handed in: a moment such as 2027-01-31T23:59:00+01:00, or a CSV file with the columns "
    "author and handed_in. [default: now, until the deadline]",
)
@click.option("--resume", is_flag=True, help="Take what the ledger has of the same source, author and problem.")
@click.option("--no-record", is_flag=True, help="Grade, but leave ledger, archive and board as they are.")
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write a summary of the results here.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here as JUnit XML.")
@_csv
@_feedback
@click.option(
    "--quick", "effort", flag_value="quick", help="Measure for less time, with no baseline unless one is set."
)
@sandbox_option("How to isolate them.")
@device_option("Where to run them.")
@jobs_option("[default: 1 on a CPU, by the processors that there are on a GPU]")
@form_option
def grade(
    problem: str | None, handins: Path | None, base: str | None, jobs: int | None, form: str, **given: Any
) -> int:
    """Grade and record several submissions: of a branch (--changed), or of a course (PROBLEM HANDINS).

    With --changed: those that the branch adds or changes, such as submissions/softmax/ada/kernel.py. HANDINS is a
    folder, or the zip archive of a learning platform, with one kernel for each author or team, in a folder with the
    author's or the team's name or in a file with it.

    Exit status: the worst of all, as for `submit`; 0 if there are none.
    """
    from kernelmark.course import batch
    from kernelmark.course.known import KnownVerdicts
    from kernelmark.course.reports import Reports

    reports = Reports(*(given[name] for name in ("summary", "junit", "marks", "feedback")))
    of_course = reports.marks or reports.feedback or given["handed_in"]
    if (base is None) == (handins is None) or (base is not None and of_course):
        what, remedy = "needs either --changed BASE or PROBLEM HANDINS", "see `kernelmark grade --help`"
        raise UsageError("grade", f"{what}; --csv, --feedback and --handed-in go with HANDINS", remedy)
    if given["allow_other"] and given["only"] is None:
        raise UsageError("--allow-other", "goes with --only", "say whose branch it is with --only AUTHOR")
    settings = load_settings(problem, **{name: given[name] for name in ("effort", "sandbox", "device")})
    known = KnownVerdicts(settings) if given["resume"] else None
    terms = batch.Terms(settings, not given["no_record"], given["late"], known)
    if base is not None:
        found = batch.of_branch(terms, base, given["head"], given["only"], allow_other=given["allow_other"])
    else:
        assert problem is not None
        assert handins is not None  # it is the second argument
        found = batch.of_course(terms, problem, handins, given["handed_in"])
    return found.grade(terms, reports, jobs, form)


@click.command("marks")
@click.argument("problem", shell_complete=complete.problems)
@_csv
@_feedback
def marks(problem: str, marks: Path | None, feedback: Path | None) -> None:
    """Write the marks of PROBLEM from its ledger, and grade nothing: a row and a text for each author on record.

    It is by what the board shows of an author, or else by the newest grading. Without --csv and --feedback the table
    is printed.
    """
    from kernelmark.course import marks as writer
    from kernelmark.course.known import KnownVerdicts
    from kernelmark.course.reports import Reports
    from kernelmark.record.records import ledgers

    settings = load_settings(problem)
    ledgers(settings, problem)  # refuses a problem that is unknown
    marked = KnownVerdicts(settings).marks(Path(problem).name)
    if marks is None and feedback is None:
        print_text(writer.table(marked).rstrip())
    Reports(marks=marks, feedback=feedback).write([one.graded for one in marked], marked, "author")
