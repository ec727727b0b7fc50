"""The commands of a course: `grade`, `marks`, `similar` and `regrade`.

Trusted. Slow imports are inside the commands that need them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from harness.errors import UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import (
    combined,
    device_option,
    form_option,
    jobs_option,
    load_settings,
    sandbox_option,
    say_frozen,
)
from kernelmark.project.documents import print_as, print_document
from kernelmark.text.terminal import columns, print_text, say, visible


@click.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.option("--dry-run", is_flag=True, help="List what would be graded again, and grade nothing.")
@click.option("--failed", is_flag=True, help="Also kernels that failed before the problem or the software changed.")
@click.option("--all", "every", is_flag=True, help="All kernels on record, also those that are up to date.")
@click.option("--author", metavar="NAME", help="Only what this author wrote.")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="The kernel of this run alone; repeatable.")
@sandbox_option("How to isolate them.")
@device_option("Where to run them.")
@jobs_option("[default: 1 on a CPU, by the processors that there are on a GPU]")
@form_option
def regrade(
    problem: str | None,
    dry_run: bool,
    failed: bool,
    every: bool,
    author: str | None,
    runs: tuple[str, ...],
    form: str,
    jobs: int | None,
    **flags: str | None,
) -> int:
    """Grade again the rows of PROBLEM, or of all problems, that are out of date (a problem, protocol or machine has
    changed) or too imprecise to rank; and what the options name.

    Exit status: 0 if every file has a new verdict, whatever its outcome; 2 or 7 if one could not be graded.
    """
    from kernelmark.course import regrade as regrading
    from kernelmark.course.gradings import grade_all, printed

    if runs and (failed or every or author is not None):
        raise UsageError("--run", "names what to grade", "leave out --failed, --all and --author")
    settings = load_settings(problem, **flags)
    due, left = regrading.due(settings, problem, regrading.Choice(failed, every, author, runs))
    say_frozen(settings, problem)
    if left:
        say(f"left out: {'; '.join(f'{count} {what}' for what, count in left.items())}")
    if dry_run or not due:
        lines = [visible(str(row)) for row in due] or ["nothing needs to be graded again here"]
        print_as(form, "due", [row.document() for row in due], lines)
        return 0
    requests = [regrading.request(settings, row) for row in due]
    results = [result for _, result in sorted(printed(grade_all(settings, requests, jobs, record=True), form))]
    if form == "json":
        authors = [request.author for request in requests]
        print_document("grade", [result.document(author) for author, result in zip(authors, results, strict=True)])
    return max(result.code if result.errored else 0 for result in results)


@click.command()
@click.argument("problem", shell_complete=complete.problems)
@click.argument("handins", required=False, type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="List pairs with at least this similarity, from 0 to 1.",
)
@click.option(
    "--base",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Starting code that everybody received, which is not compared; repeatable.",
)
@click.option(
    "--with",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="EARLIER",
    help="Compare also with these submissions of an earlier course; repeatable.",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with the pairs side by side here."
)
@form_option
def similar(
    problem: str,
    handins: Path | None,
    threshold: float,
    base: tuple[Path, ...],
    earlier: tuple[Path, ...],
    html: Path | None,
    form: str,
) -> None:
    """List people whose files on PROBLEM are nearly the same, without taking any action. The files are those on record,
    and those in HANDINS, a folder or an archive as for `grade`.

    Members of one team are not compared with each other.
    """
    from harness.submission import Submission
    from kernelmark.course import copies
    from kernelmark.course.marks import write
    from kernelmark.record.records import sources
    from leaderboard.record.similar import similar as similar_pairs

    settings = load_settings(problem)
    starts = [Submission.read(path, "start") for path in base]
    submissions, missing = sources(settings, problem)
    say_frozen(settings, problem)
    for error in missing:
        say(f"kernelmark: warning: {visible(error)}")
    if handins is not None:
        submissions |= copies.handed_in(settings, problem, handins)
    for place in earlier:
        submissions |= copies.handed_in(settings, problem, place, earlier=True)
    pairs = similar_pairs(submissions, threshold, settings.teams, starts)
    rows = [
        (f"{pair.similarity:.2f}", visible(str(pair.one)), visible(str(pair.other)), str(pair.length), str(pair.group))
        for pair in pairs
    ]
    found: list[str] = [*columns(rows, head=("similarity", "file", "nearly the same as", "length", "group"))]
    found += map(visible, copies.people(pairs))
    nothing = [f"no two files of {len(submissions)} are that similar"]
    if html is not None:
        page = copies.page(f"Similar files: {problem}", pairs, submissions, starts)
        write(html, page.encode())
        say(f"wrote {visible(str(html))}")
    print_as(form, "similar", pairs, found if rows else nothing)


_mark_options = combined(
    click.option(
        "--csv", "marks", type=click.Path(path_type=Path, dir_okay=False), help="Write a row for each author here."
    ),
    click.option(
        "--feedback",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Write a file for each author here: DIR/AUTHOR.txt, or named so that Moodle takes it back.",
    ),
    click.option(
        "--gradebook",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="SHEET",
        help="Write points into a copy of this sheet: Moodle's grading worksheet or Canvas's gradebook, as exported.",
    ),
    click.option("--column", metavar="NAME", help="With --gradebook: which assignment of Canvas it is."),
    click.option(
        "--gradescope",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Write Gradescope's results here: DIR/AUTHOR/results.json.",
    ),
)
_FORMS = ("gradebook", "gradescope", "column")
_COURSE_ONLY = ("handed_in", "file", "roster", "only_list", *_FORMS)


@click.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
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
    help="When HANDINS were submitted: a time such as 2027-01-31T23:59:00+01:00, or a CSV file: the sheet of Moodle "
    "or Gradescope, or the columns author and handed_in. [default: now, until the deadline]",
)
@click.option(
    "--file",
    metavar="NAME",
    help="Which of an author's files is the kernel. [default: the one that the problem's file names, or else the "
    "only one, or the one that defines the entry]",
)
@click.option(
    "--roster",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A CSV file of everyone in the course: author, name, id, team, extension. Who submitted nothing has a row.",
)
@click.option("--list", "only_list", is_flag=True, help="List authors and kernels in HANDINS, and grade nothing.")
@click.option("--resume", is_flag=True, help="Take what the ledger has of the same source, author and problem.")
@click.option("--no-record", is_flag=True, help="Grade, but leave ledger, archive and board as they are.")
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write a summary of the results here.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here as JUnit XML.")
@_mark_options
@click.option(
    "--quick", "effort", flag_value="quick", help="Measure for less time, with no baseline unless one is set."
)
@sandbox_option("How to isolate them.")
@device_option("Where to run them.")
@jobs_option("[default: 1 on a CPU, by the processors that there are on a GPU]")
@form_option
def grade(
    problem: str | None, handins: Path | None, base: str | None, jobs: int | None, form: str, **flags: Any
) -> int:
    """Grade and record several submissions: of a branch (--changed), or of a course (PROBLEM HANDINS).

    With --changed: those that the branch adds or changes, such as submissions/softmax/ada/kernel.py. HANDINS is a
    folder, or the zip archive of a learning platform, with one kernel for each author or team, in a folder with the
    author's or the team's name or in a file with it. The headers or modules next to a kernel that it uses go along.

    Exit status: the worst of all, as for `submit`; 0 if there are none.
    """
    from kernelmark.course import batch
    from kernelmark.course.listing import listing
    from kernelmark.course.marks import Reports
    from kernelmark.course.platforms import PlatformForms
    from kernelmark.course.recorded import RecordedVerdicts
    from kernelmark.record.records import whole

    reports = Reports(*(flags[name] for name in ("summary", "junit", "marks", "feedback")))
    of_course = reports.marks or reports.feedback or any(flags[name] for name in _COURSE_ONLY)
    if (base is None) == (handins is None) or (base is not None and of_course):
        what, remedy = "needs either --changed BASE or PROBLEM HANDINS", "see `kernelmark grade --help`"
        of_handins = "--csv, --feedback, --gradebook, --gradescope, --file, --list, --roster and --handed-in"
        raise UsageError("grade", f"{what}; {of_handins} go with HANDINS", remedy)
    if flags["allow_other"] and flags["only"] is None:
        raise UsageError("--allow-other", "goes with --only", "say whose branch it is with --only AUTHOR")
    settings = load_settings(problem, **{name: flags[name] for name in ("effort", "sandbox", "device")})
    recorded = RecordedVerdicts(whole(settings)) if flags["resume"] else None
    options = batch.GradeOptions(settings, not (flags["no_record"] or flags["only_list"]), flags["late"], recorded)
    if base is not None:
        found = batch.of_branch(options, base, flags["head"], flags["only"], allow_other=flags["allow_other"])
    else:
        assert problem is not None
        assert handins is not None  # it is the second argument
        found = batch.of_course(
            options, problem, handins, **{name: flags[name] for name in ("handed_in", "file", "roster")}
        )
        if flags["only_list"]:
            dated = flags["handed_in"] is not None
            listing([(submitted, delay if dated else None) for submitted, delay in found.submitted], found.absent, form)
            return 0
        forms = PlatformForms.read(found.marking, *(flags[name] for name in _FORMS))
        reports = replace(reports, forms=forms)
    reports.refuse_unwritable()
    return found.grade(options, reports, jobs, form)


@click.command("marks")
@click.argument("problem", shell_complete=complete.problems)
@_mark_options
def marks(problem: str, marks: Path | None, feedback: Path | None, **flags: Any) -> None:
    """Write the marks of PROBLEM from its ledger, and grade nothing: a row and a text for each author on record.

    It is by what the board shows of an author, or else by the newest grading. If no file is named, the table is
    printed.
    """
    from kernelmark.course import marks as writer
    from kernelmark.course.marks import Reports
    from kernelmark.course.platforms import PlatformForms
    from kernelmark.course.points import Marking
    from kernelmark.course.recorded import RecordedVerdicts
    from kernelmark.record.records import slug_of

    settings = load_settings(problem)
    say_frozen(settings, problem)  # and refuses a problem that is unknown
    marking = Marking.of_record(settings, problem)
    forms = PlatformForms.read(marking, *(flags[name] for name in _FORMS))
    found = RecordedVerdicts(settings).marks(slug_of(settings, problem), marking)
    if not any((marks, feedback, *forms)):
        print_text(writer.table(found).rstrip())
    reports = Reports(marks=marks, feedback=feedback, forms=forms)
    reports.write([mark.graded for mark in found], found, "author")
