"""The organizers' commands: moderation, verification, export, and grading for a competition.

`cli` adds them to `kernelmark`. Trusted. Slow imports are done by the commands that need them.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import HarnessError, UsageError
from kernelmark.commands import complete
from kernelmark.commands.help import Group
from kernelmark.commands.printing import (
    device_option,
    form_option,
    jobs_option,
    load_settings,
    print_json,
    print_lines,
    sandbox_option,
    say,
)
from kernelmark.text.terminal import columns, counted, visible

if TYPE_CHECKING:
    from harness.problem.schedule import Delay


@click.group(cls=Group)
def moderate() -> None:
    """Moderate a recorded run: an event is appended; nothing is ever edited or removed."""


def _moderating(action: str, text: str, *, scoped: bool = True) -> click.Command:
    @click.argument("run", shell_complete=complete.runs)
    @click.option("--actor", required=True, help="Who says so.")
    @click.option("--reason", required=True, help="Why; shown on the board.")
    @form_option
    def command(run: str, actor: str, reason: str, form: str, source: bool = False, author: bool = False) -> None:
        from kernelmark.services.recording import moderate
        from kernelmark.text import show

        if source and author:
            raise UsageError("--source and --author", "cannot be given together", "give one of them")
        scope = "source" if source else "author" if author else "run"
        event = moderate(load_settings(), run, action, actor, reason, scope)  # type: ignore[arg-type]  # of those below
        print_lines([event.to_json()] if form == "json" else [event.run, *show.moderation([event])])

    if scoped:
        command = click.option(
            "--source",
            is_flag=True,
            help="Every run of this source on the problem, by any author, including later ones.",
        )(command)
        command = click.option(
            "--author",
            is_flag=True,
            help="Every run of this author, later ones too, in every ledger that exists now.",
        )(command)
    return click.command(action, help=text)(command)


moderate.add_command(_moderating("disqualify", "Remove RUN from the ranking; `show` still shows it."))
moderate.add_command(_moderating("reinstate", "Let RUN rank again, or for the first time if it was late."))
moderate.add_command(_moderating("annotate", "Attach a note to RUN; its state does not change.", scoped=False))


@click.command()
@form_option
def verify(form: str) -> int:
    """Check every ledger, its chain, and the archived sources and profiles, and list all faults.

    Exit status: 0 if nothing is wrong, 7 if something is.
    """
    from kernelmark.services.records import current, ledgers
    from leaderboard.record.inspection import inspect

    settings = load_settings()
    now, archive = current(settings), settings.locate("archive")
    inspections = [inspect(ledger.path, archive, now) for ledger in ledgers(settings)]
    faults = [fault for each in inspections for fault in each.faults]
    if form == "json":
        print_json([asdict(each) for each in inspections])
    else:
        for fault in faults:
            print_lines([visible(str(fault))])
        for each in inspections:
            entries, verdicts = counted(each.entries, "entry", "entries"), counted(each.known, "verdict")
            counts = f"{entries}, {verdicts} on the current problem, {each.stale} on earlier versions of it"
            unknown = f", {each.unknown} on a problem not found here" if each.unknown else ""
            others = each.entries - each.known - each.stale - each.unknown
            # Moderation events, and kinds that a later version wrote.
            rest = f", {counted(others, 'other')}" if others else ""
            print_lines([f"{each.path.name}: {counts}{unknown}{rest}"])
        if not inspections:
            print_lines([f"nothing is recorded in {settings.locate('results')}"])
    return HarnessError.exit_code if faults else 0


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
@click.option("--no-record", is_flag=True, help="Grade, but leave ledger, archive and board as they are.")
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write a summary of the results here.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here as JUnit XML.")
@click.option(
    "--csv", "marks", type=click.Path(path_type=Path, dir_okay=False), help="Write a row for each hand-in here."
)
@click.option(
    "--feedback",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a file for each author here: DIR/AUTHOR.txt, or named so that Moodle takes it back.",
)
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
    from kernelmark.commands import changed, moments, strays
    from kernelmark.commands import handins as course
    from kernelmark.commands.reports import Reports
    from kernelmark.commands.several import Asked, InOrder, grade_all
    from kernelmark.services.allowance import Allowance
    from kernelmark.text import report

    if (base is None) == (handins is None) or (base is not None and (marks or feedback or handed_in)):
        what, remedy = "needs either --changed BASE or PROBLEM HANDINS", "see `kernelmark grade --help`"
        raise UsageError("grade", f"{what}; --csv, --feedback and --handed-in go with HANDINS", remedy)
    settings, record, now = load_settings(problem, **flags), not no_record, datetime.now(UTC)
    found: list[tuple[course.HandIn, Delay | None]] = []
    asked: list[Asked] = []
    if allow_other and only is None:
        raise UsageError("--allow-other", "goes with --only", "say whose branch it is with --only AUTHOR")
    if base is not None:
        submitted, allowance = changed.changed(settings, base, head), Allowance(settings)
        if only is not None:
            strays.refuse_strays(settings, base, head, only, allowed=allow_other)
        for file in submitted:
            asked.append(changed.asked(settings, file, allowance, late=late, now=now, record=record))
    elif problem is not None and handins is not None:
        loaded = course.problem_of(settings, problem, handins, now)  # else every hand-in would be told
        when = moments.moments(handed_in, loaded, now, needed=record and late is None)
        for each in course.handed_in(handins, settings.teams):
            found.append((each, moments.delay(loaded, each, when)))
            asked.append(course.asked(settings, problem, each, late=late, moments=when, now=now, record=record))
        if late is None and found and not any(delay for _, delay in found):
            say(f"kernelmark: note: {loaded.slug}: {loaded.schedule_at(now)}; --handed-in says how late each one was")
    results = grade_all(settings, asked, jobs, record=record, refuse_together=base is None)
    printed = InOrder(form)
    try:
        with printed:
            for place, result in results:
                printed.add(place, result)
    finally:  # what was graded before an interruption is recorded, and must be reported
        missed = "not graded: the command was interrupted before its turn"
        every = [
            printed.results.get(place) or report.Graded(each.path, HarnessError.exit_code, missed)
            for place, each in enumerate(asked)
        ]
        marked = [
            one
            for (each, delay), graded in zip(found, every, strict=False)
            for one in course.marked(each, delay, graded)
        ]
        if form == "json":
            print_json([each.document() for each in every])
        elif not every:
            print_lines(["no submission was added or changed"])
        Reports(summary, junit, marks, feedback).write(every, marked, "hand-in" if base is None else "submission")
    return report.worst(every)


@click.command("merge-ledger")
@click.argument("ours", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("theirs", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--base",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Their common ancestor; an empty file if they have none.",
)
def merge_ledger(ours: Path, theirs: Path, base: Path | None) -> None:
    """Merge two ledgers that were both appended to, and write the result to OURS; usable as a git merge driver.

    Exit status: 0 if OURS now holds both; 7 if they contradict each other, and OURS is unchanged.
    """
    from leaderboard.record.merge import merge_files

    count = merge_files(ours, theirs, base)
    say(f"merged, {count} entries; `kernelmark board --write` updates the Markdown")


@click.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.option("--dry-run", is_flag=True, help="List what would be graded again, and grade nothing.")
@click.option("--failed", is_flag=True, help="Also kernels that failed before what is out of date now was changed.")
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
    from kernelmark.commands import regrade as again
    from kernelmark.commands.several import InOrder, grade_all

    if runs and (failed or every or author is not None):
        raise UsageError("--run", "names what to grade", "leave out --failed, --all and --author")
    settings = load_settings(problem, **flags)
    due, left = again.due(settings, problem, again.Choice(failed, every, author, runs))
    if left:
        say(f"left out: {'; '.join(f'{count} {what}' for what, count in left.items())}")
    if dry_run or not due:
        listed = [
            {"problem": e.ledger.path.stem, "run": e.row.run, "author": e.row.author, "reason": e.reason} for e in due
        ]
        lines = [visible(str(each)) for each in due] or ["nothing needs to be graded again here"]
        print_json(listed) if form == "json" else print_lines(lines)
        return 0
    with InOrder(form) as printed:
        for place, result in grade_all(settings, [again.asked(settings, each) for each in due], jobs, record=True):
            printed.add(place, result)
    results = [printed.results[place] for place in range(len(due))]
    if form == "json":
        print_json([each.document() for each in results])
    return max(each.code if each.errored else 0 for each in results)


@click.command()
@click.argument("problem", shell_complete=complete.problems)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="List pairs with at least this similarity, from 0 to 1.",
)
@form_option
def similar(problem: str, threshold: float, form: str) -> None:
    """List files of different authors on PROBLEM that are nearly the same, without taking any action.

    Members of one team are not compared with each other.
    """
    from kernelmark.services.records import sources
    from leaderboard.record.similar import similar as alike

    settings = load_settings(problem)
    submissions, missing = sources(settings, problem)
    for each in missing:
        say(f"kernelmark: warning: {visible(each)}")
    pairs = alike(submissions, threshold, settings.teams)
    if form == "json":
        print_json([pair.model_dump() for pair in pairs])
    else:
        rows = [(f"{pair.similarity:.2f}", visible(str(pair.one)), visible(str(pair.other))) for pair in pairs]
        head = ("similarity", "file", "nearly the same as")
        print_lines(columns([head, *rows]) if rows else [f"no two files of {len(submissions)} are that similar"])


COMMANDS: tuple[click.Command, ...] = (
    moderate,
    verify,
    grade,
    merge_ledger,
    regrade,
    similar,
)
