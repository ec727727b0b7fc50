"""The commands that change or check ledgers. Trusted. Slow imports are inside the commands that need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import HarnessError, UsageError
from kernelmark.commands import complete
from kernelmark.commands.help import Group
from kernelmark.commands.options import combined, form_option, load_settings
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import counted, labelled, print_text, say, visible, warn

if TYPE_CHECKING:
    from kernelmark.server.record.repairing import LedgerRepair
    from leaderboard.record.moderation import Action, Moderation, Scope


@click.group(cls=Group)
def moderate() -> None:
    """Moderate a recorded run: an event is appended; nothing is ever edited or removed."""


_event_options = combined(
    click.option("--actor", required=True, help="Who says so."),
    click.option("--reason", required=True, help="Why; shown on the board."),
    form_option,
)


def _event_command(action: Action, text: str, *, scoped: bool = True) -> click.Command:
    @click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]...", shell_complete=complete.runs)
    @_event_options
    def command(
        runs: tuple[str, ...], actor: str, reason: str, form: str, source: bool = False, author: bool = False
    ) -> None:
        from kernelmark.record.moderating import moderate

        if source and author:
            raise UsageError("--source and --author", "cannot be given together", "give one of them")
        scope: Scope = "source" if source else "author" if author else "run"
        _print_events(form, moderate(load_settings(), runs, action, actor, reason, scope))

    if scoped:
        source_text = "Every run of this source on the problem, by any author, including later ones."
        author_text = "Every run of this author, later ones too, in every ledger that exists now."
        command = click.option("--source", is_flag=True, help=source_text)(command)
        command = click.option("--author", is_flag=True, help=author_text)(command)
    return click.command(action, help=text)(command)


def _print_events(form: str, events: Sequence[Moderation]) -> None:
    """Print each event as a document, or for people with its run and, for a note, who sees it."""
    from kernelmark.record.moderating import audience
    from kernelmark.text import standings

    settings = load_settings()
    for event in events:
        lines = [event.run, *standings.moderation([event])]
        if form != "json" and event.action == "annotate":
            lines.append(labelled("shown to", audience(settings, event)))
        print_as(form, "moderation", event.to_json(), lines)


moderate.add_command(_event_command("disqualify", "Remove each RUN from the ranking; `show` still shows it."))
moderate.add_command(_event_command("reinstate", "Let each RUN rank again, or for the first time if it was late."))
moderate.add_command(_event_command("annotate", "Attach a note to each RUN; its state does not change.", scoped=False))


@moderate.command("undo")
@click.argument("event")
@_event_options
def undo(event: str, actor: str, reason: str, form: str) -> None:
    """Undo EVENT, which `kernelmark moderate list` names: both events stay on record, and no longer count.

    EVENT is its id, or the id's first digits. What undoes an event can be undone, too.
    """
    from kernelmark.record import moderating

    _print_events(form, [moderating.undo(load_settings(), event, actor, reason)])


@moderate.command("list")
@click.argument("problem", required=False, shell_complete=complete.problems)
@form_option
def list_events(problem: str | None, form: str) -> None:
    """List all events on PROBLEM, or on all problems, with their ids, undone ones too."""
    from kernelmark.record.moderating import events
    from kernelmark.text import standings

    found = events(load_settings(problem), problem)
    print_as(form, "events", found, standings.moderated(found) if found else ["nothing was moderated"])


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]...", shell_complete=complete.runs)
@click.option("--author", help="Whose they are. [default: as for `submit`]")
@click.option("--to", "server", metavar="SERVER", help="They are yours on this server, by its name or address.")
def select(runs: tuple[str, ...], author: str | None, server: str | None) -> None:
    """Select which RUNs of yours on a problem count once it is closed, in place of your best; again replaces it.

    It is about their sources, also where these are graded again. The setting `selection` says how many there may be.
    """
    if server is not None:
        from kernelmark.client import servers, submitting

        if author is not None:
            raise UsageError("--author", "is for the project here", "leave it out: it is your account on the server")
        with servers.connection(server) as connection:
            selected = submitting.select(connection, runs)
    else:
        from kernelmark.project.problems import refuse_without_project
        from kernelmark.record import recording
        from kernelmark.record.records import find_run, whole

        settings = load_settings(author=author)
        refuse_without_project(settings)
        found = (find_run(whole(settings), run) for run in runs)
        selected = recording.select(settings, settings.author_or_default(), found)
    print_text("\n".join(selected.runs))
    for warning in selected.warnings:
        warn(warning)
    say(visible(f"selected for {selected.author}: {counted(selected.sources, 'source')}"))


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
    lines = [visible(str(fault)) for fault in faults]
    for found in inspections:
        entries, verdicts = counted(found.entries, "entry", "entries"), counted(found.known, "verdict")
        counts = f"{entries}, {verdicts} on the current problem, {found.stale} on earlier versions of it"
        unknown = f", {found.unknown} on a problem not found here" if found.unknown else ""
        others = found.entries - found.known - found.stale - found.unknown
        # Moderation events, and kinds of entries from later versions.
        rest = f", {counted(others, 'other')}" if others else ""
        lines.append(f"{found.path.name}: {counts}{unknown}{rest}")
    nothing = [f"nothing is recorded in {settings.locate('results')}"]
    print_as(form, "verify", inspections, lines or nothing)
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


@click.command("import-ledger")
@click.argument("project", type=click.Path(path_type=Path, exists=True, file_okay=False))
@form_option
def import_ledger(project: Path, form: str) -> int:
    """Take in what PROJECT, another copy of this project, has recorded and this one has not, with the sources.

    Lines are appended and none is rewritten, so it is for projects with a server, whose ledgers must not be merged.

    Exit status: 0, or 7 if a ledger could not be taken in; the others were.
    """
    from kernelmark.project.problems import refuse_without_project
    from kernelmark.project.project import Project
    from kernelmark.record.importing import import_project

    refuse_without_project(settings := load_settings())
    found = import_project(settings, Project(project))
    lines = list[str]()
    for ledger in found:
        counts = f"{counted(ledger.entries, 'entry', 'entries')}, {counted(len(ledger.runs), 'run')}, appended"
        lines.append(f"{ledger.problem}: {ledger.error or (counts if ledger.entries else 'nothing is missing')}")
    print_as(form, "import-ledger", found, map(visible, lines or [f"nothing is recorded in {project}"]))
    return HarnessError.exit_code if any(ledger.error for ledger in found) else 0


@click.command("repair-ledger")
@click.option("--append", is_flag=True, help="Append the missing entries, from which the server then continues.")
@form_option
def repair_ledger(append: bool, form: str) -> int:
    """Show how the ledgers differ from what the project's server has left, after one was lost or replaced by a copy.

    The server must not run. With --append it records again in these ledgers from its next start on. What a ledger had
    after its copy was made and the server does not keep any more is lost: a run's verdict is kept for 30 days.

    Exit status: 0 if nothing is wrong or all was appended, 7 otherwise.
    """
    from kernelmark.project.project import Project
    from kernelmark.server.record import repairing

    settings = load_settings()
    with repairing.stopped(Project.of(settings)) as database:
        found = [*repairing.compare(database, settings)]
        for ledger in found if append else ():
            repairing.repair(database, settings, ledger)
    lines = [line for ledger in found for line in _repair_lines(ledger, append=append)]
    print_as(form, "repair-ledger", found, map(visible, lines or ["every ledger is as the server has left it"]))
    whole = all(append and len(ledger.appended) == len(ledger.missing) for ledger in found)
    return 0 if whole else HarnessError.exit_code


def _repair_lines(ledger: LedgerRepair, *, append: bool) -> Iterator[str]:
    if ledger.damage:
        yield f"{ledger.problem}: {ledger.damage}"
    for run in ledger.missing:
        if run in ledger.appended:
            what = "was appended"
        elif run in ledger.lost:
            what = "is missing, and the server does not keep its verdict any more"
        else:
            what = f"is missing{'; ' if run in ledger.failed else ''}{ledger.failed.get(run, '')}"
        yield f"{ledger.problem}: run {run} {what}"
    if not append:
        yield f"{ledger.problem}: `kernelmark repair-ledger --append` appends what it can, and goes on with that file"
