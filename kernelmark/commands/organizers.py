"""The organizers' commands: moderation, verification, merging, and grading again.

`cli` adds them to `kernelmark`. Trusted. Slow imports are done by the commands that need them.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from harness.errors import HarnessError, UsageError
from kernelmark.commands import complete, grade
from kernelmark.commands.help import Group
from kernelmark.commands.options import device_option, form_option, jobs_option, load_settings, sandbox_option
from kernelmark.text.printing import print_json, print_lines, print_text, say
from kernelmark.text.terminal import columns, counted, visible


@click.group(cls=Group)
def moderate() -> None:
    """Moderate a recorded run: an event is appended; nothing is ever edited or removed."""


def _moderating(action: str, text: str, *, scoped: bool = True) -> click.Command:
    @click.argument("run", shell_complete=complete.runs)
    @click.option("--actor", required=True, help="Who says so.")
    @click.option("--reason", required=True, help="Why; shown on the board.")
    @form_option
    def command(run: str, actor: str, reason: str, form: str, source: bool = False, author: bool = False) -> None:
        from kernelmark.record.recording import moderate
        from kernelmark.text import standings

        if source and author:
            raise UsageError("--source and --author", "cannot be given together", "give one of them")
        scope = "source" if source else "author" if author else "run"
        event = moderate(load_settings(), run, action, actor, reason, scope)  # type: ignore[arg-type]  # of those below
        print_text(event.to_json()) if form == "json" else print_lines([event.run, *standings.moderation([event])])

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
    from kernelmark.record.records import current, ledgers
    from leaderboard.record.inspection import inspect

    settings = load_settings()
    now, archive = current(settings), settings.locate("archive")
    inspections = [inspect(ledger.path, archive, now) for ledger in ledgers(settings)]
    faults = [fault for inspection in inspections for fault in inspection.faults]
    if form == "json":
        print_json([asdict(inspection) for inspection in inspections])
    else:
        for fault in faults:
            print_lines([visible(str(fault))])
        for found in inspections:
            entries, verdicts = counted(found.entries, "entry", "entries"), counted(found.known, "verdict")
            counts = f"{entries}, {verdicts} on the current problem, {found.stale} on earlier versions of it"
            unknown = f", {found.unknown} on a problem not found here" if found.unknown else ""
            others = found.entries - found.known - found.stale - found.unknown
            # Moderation events, and kinds that a later version wrote.
            rest = f", {counted(others, 'other')}" if others else ""
            print_lines([f"{found.path.name}: {counts}{unknown}{rest}"])
        if not inspections:
            print_lines([f"nothing is recorded in {settings.locate('results')}"])
    return HarnessError.exit_code if faults else 0


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
    from kernelmark.course import regrade as again
    from kernelmark.course.several import InOrder, grade_all

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
        lines = [visible(str(one)) for one in due] or ["nothing needs to be graded again here"]
        print_json(listed) if form == "json" else print_lines(lines)
        return 0
    with InOrder(form) as printed:
        for place, result in grade_all(settings, [again.asked(settings, one) for one in due], jobs, record=True):
            printed.add(place, result)
    results = [printed.results[place] for place in range(len(due))]
    if form == "json":
        print_json([result.document() for result in results])
    return max(result.code if result.errored else 0 for result in results)


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
    from kernelmark.record.records import sources
    from leaderboard.record.similar import similar as alike

    settings = load_settings(problem)
    submissions, missing = sources(settings, problem)
    for error in missing:
        say(f"kernelmark: warning: {visible(error)}")
    pairs = alike(submissions, threshold, settings.teams)
    if form == "json":
        print_json([pair.model_dump() for pair in pairs])
    else:
        rows = [(f"{pair.similarity:.2f}", visible(str(pair.one)), visible(str(pair.other))) for pair in pairs]
        head = ("similarity", "file", "nearly the same as")
        print_lines(columns(rows, head=head) if rows else [f"no two files of {len(submissions)} are that similar"])


COMMANDS: tuple[click.Command, ...] = (
    moderate,
    verify,
    grade.grade,
    grade.marks,
    merge_ledger,
    regrade,
    similar,
)
