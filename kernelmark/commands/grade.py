"""Grading for a course or a competition, and the marks that follow from it: `kernelmark grade` and `marks`.

`organizers` adds them to its commands. Trusted. Slow imports are done by the commands that need them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import HarnessError, UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import device_option, form_option, jobs_option, load_settings, sandbox_option
from kernelmark.text.printing import print_json, print_lines, say

if TYPE_CHECKING:
    from harness.problem.schedule import Delay
    from kernelmark.text.marks import Marked

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
    problem: str | None,
    handins: Path | None,
    base: str | None,
    head: str,
    only: str | None,
    allow_other: bool,
    late: str | None,
    handed_in: str | None,
    resume: bool,
    no_record: bool,
    summary: Path | None,
    junit: Path | None,
    marks: Path | None,
    feedback: Path | None,
    form: str,
    jobs: int | None,
    **flags: str | None,
) -> int:
    """Grade and record several submissions: of a branch (--changed), or of a course (PROBLEM HANDINS).

    With --changed: those that the branch adds or changes, such as submissions/softmax/ada/kernel.py. HANDINS is a
    folder, or the zip archive of a learning platform, with one kernel for each author or team, in a folder with the
    author's or the team's name or in a file with it.

    Exit status: the worst of all, as for `submit`; 0 if there are none.
    """
    from kernelmark.course import changed, moments, strays
    from kernelmark.course import handins as course
    from kernelmark.course.known import Known
    from kernelmark.course.reports import Reports
    from kernelmark.course.several import Asked, InOrder, grade_all
    from kernelmark.record.allowance import Allowance
    from kernelmark.text import report

    if (base is None) == (handins is None) or (base is not None and (marks or feedback or handed_in)):
        what, remedy = "needs either --changed BASE or PROBLEM HANDINS", "see `kernelmark grade --help`"
        raise UsageError("grade", f"{what}; --csv, --feedback and --handed-in go with HANDINS", remedy)
    settings, record, now = load_settings(problem, **flags), not no_record, datetime.now(UTC)
    known = Known(settings) if resume else None
    found: list[tuple[course.HandIn, Delay | None]] = []
    asked: list[Asked] = []
    if allow_other and only is None:
        raise UsageError("--allow-other", "goes with --only", "say whose branch it is with --only AUTHOR")
    if base is not None:
        submitted, allowance = changed.changed(settings, base, head), Allowance(settings)
        if only is not None:
            strays.refuse_strays(settings, base, head, only, allowed=allow_other)
        for file in submitted:
            asked.append(changed.asked(settings, file, allowance, known, late=late, now=now, record=record))
    elif problem is not None and handins is not None:
        loaded = course.problem_of(settings, problem, handins, now)  # else every hand-in would be told
        when = moments.moments(handed_in, loaded, now, needed=record and late is None)
        for each in course.handed_in(handins, settings.teams):
            found.append((each, moments.delay(loaded, each, when)))
            asked.append(course.asked(settings, problem, each, known, late=late, moments=when, now=now, record=record))
        if late is None and found and not any(delay for _, delay in found):
            say(f"kernelmark: note: {loaded.slug}: {loaded.schedule_at(now)}; --handed-in says how late each one was")
    results = grade_all(settings, asked, jobs, record=record, refuse_together=base is None)
    printed, reports = InOrder(form), Reports(summary, junit, marks, feedback)
    every = [
        report.Graded(each.path, HarnessError.exit_code, "not graded: the command was interrupted before its turn")
        for each in asked
    ]

    def marked(places: Iterable[int]) -> list[Marked]:
        return [one for place in places if found for one in course.marked(*found[place], every[place])]

    try:
        with printed:
            for place, result in results:
                printed.add(place, result)
                every[place] = result
                reports.keep(marked(range(len(every))), marked([place]))
    finally:  # what was graded before an interruption is recorded, and must be reported
        if form == "json":
            print_json([each.document() for each in every])
        elif not every:
            print_lines(["no submission was added or changed"])
        reports.write(every, marked(range(len(every))), "hand-in" if base is None else "submission")
    return report.worst(every)


@click.command("marks")
@click.argument("problem", shell_complete=complete.problems)
@_csv
@_feedback
def marks(problem: str, marks: Path | None, feedback: Path | None) -> None:
    """Write the marks of PROBLEM from its ledger, and grade nothing: a row and a text for each author on record.

    It is by what the board shows of an author, or else by the newest grading. Without --csv and --feedback the table
    is printed.
    """
    from kernelmark.course.known import Known
    from kernelmark.course.reports import Reports
    from kernelmark.record.records import ledgers
    from kernelmark.text import marks as writer

    settings = load_settings(problem)
    ledgers(settings, problem)  # refuses a problem that is unknown
    marked = Known(settings).marks(Path(problem).name)
    if marks is None and feedback is None:
        print_lines([writer.table(marked).rstrip()])
    Reports(None, None, marks, feedback).write([each.graded for each in marked], marked, "author")
