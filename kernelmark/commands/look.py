"""The commands that show the record, `kernelmark board`, `runs` and `show`; and `explain`, which explains terms."""

from __future__ import annotations

from collections.abc import Sequence

import click
from typing_extensions import TypedDict

from harness.errors import UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import form_option, from_option, load_settings, say_frozen
from kernelmark.project.documents import print_as, print_document
from kernelmark.text.terminal import print_lines, say, visible


@click.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.option("--write", is_flag=True, help="Write the Markdown of every problem again, for example after a merge.")
@click.option("--memory", is_flag=True, help="Add the most device memory that a call of any case allocates.")
@click.option("--all", "every", is_flag=True, help="Print the rows of tables that are out of date, too.")
@from_option
@form_option
def board(problem: str | None, write: bool, memory: bool, every: bool, server: str | None, form: str) -> None:
    """Print the standings of PROBLEM, or of every problem."""
    from kernelmark.text import standings

    if server is not None:
        from kernelmark.client import reading, servers

        if write:
            raise UsageError("--write", "is for the project here", "leave it or --from out")
        with servers.reading(server) as connection:
            found = reading.tables(connection, problem)
            listed = () if found else reading.problems(connection).items
        print_as(form, "board", found, standings.board(found, memory=memory, folded=not every))
        for one in listed:
            if one.frozen is not None and problem in (None, one.slug):
                say(f"{visible(one.slug)}: {standings.frozen(one.frozen)}")
        return
    from kernelmark.project.problems import refuse_without_project
    from kernelmark.record.publishing import publish_all
    from kernelmark.record.records import tables

    if write:
        refuse_without_project(own := load_settings())
        publish_all(own)
    settings = load_settings(problem)
    found = tables(settings, problem)
    print_as(form, "board", found, standings.board(found, memory=memory, folded=not every))
    if not found:
        say_frozen(settings, problem)
    if found and form == "table":
        say("Each row is an author's best submission; `kernelmark runs` lists all of them.")


@click.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.option("--author", help="Only those of this author.")
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many.")
@from_option
@form_option
def runs(problem: str | None, author: str | None, last: int, server: str | None, form: str) -> None:
    """List the recorded gradings of PROBLEM, or of every problem, newest first.

    A board shows the best submission of each author. This shows all of them, those that failed too. With --from, it
    lists your own submissions to that server, and what became of them.
    """
    if server is not None:
        _own(server, problem, author, last, form)
        return
    from kernelmark.record.records import newest
    from kernelmark.text import standings

    settings = load_settings(problem)
    found, total = newest(settings, problem, author=author, last=last)
    print_as(form, "runs", [run.document() for run in found], standings.runs(found, total, author))
    say_frozen(settings, problem)


def _own(server: str, problem: str | None, author: str | None, last: int, form: str) -> None:
    from kernelmark.client import lines, reading, servers

    if author is not None:
        raise UsageError("--author", "is for the project here", "leave it out: a server lists your own submissions")
    with servers.connection(server) as connection:
        mine = reading.own(connection, last=last, problem=problem, standings=True)
    print_as(form, "submissions", mine, lines.submissions(mine))


class DiffDocument(TypedDict):
    """Two runs, and the lines of the unified diff from the one before."""

    run: str
    before: str
    diff: list[str]


@click.command("show")
@click.argument("run", shell_complete=complete.runs)
@click.argument("other", required=False, shell_complete=complete.runs)
@click.option(
    "--diff",
    "changes",
    is_flag=True,
    help="Show instead what changed in the source, with both times: since OTHER. "
    "[default: since its author's fastest run before it on this device, else their last]",
)
@from_option
@form_option
def show(run: str, other: str | None, changes: bool, server: str | None, form: str) -> None:
    """Show one recorded grading in full; RUN is its id, or the id's first digits. `--format json` adds its seeds.

    With --diff, somebody else's source is shown only where the problem publishes sources.
    """
    if server is not None:
        if changes or other is not None:
            raise UsageError("--diff", "is for the project here", "leave it or --from out")
        _there(server, run, form)
        return
    if changes:
        _changes(run, other, form)
        return
    if other is not None:
        raise UsageError("OTHER", "is for --diff", "add --diff, or leave it out; `kernelmark compare` times both again")
    from kernelmark.record.records import find_run
    from kernelmark.text import show as text
    from leaderboard.standings.gradings import moderation, pooled

    ledger, entry = find_run(load_settings(), run)
    if form == "json":
        print_document("verdict", entry.verdict.to_json())
        return
    verdict = entry.verdict
    facts = ledger.facts()
    print_lines(text.run(verdict, moderation(facts, verdict), pooled(facts, verdict)))


def _there(server: str, run: str, form: str) -> None:
    from kernelmark.client import reading, servers
    from kernelmark.text import show as text

    with servers.reading(server) as connection:
        verdict = reading.recorded(connection, reading.whole_run(connection, run))
        events = [] if form == "json" else reading.moderation(connection, verdict)
    if form == "json":
        print_document("verdict", verdict.to_json())
    else:
        print_lines(text.run(verdict, events))


def _changes(run: str, other: str | None, form: str) -> None:
    from kernelmark.record.revision import revision
    from kernelmark.text import difference

    before, after = revision(load_settings(), run, other)
    changes = list(difference.diff(before, after))
    document: DiffDocument = {"run": after.verdict.run, "before": before.verdict.run, "diff": changes}
    print_as(form, "diff", document, difference.lines(before, after))


@click.command()
@click.argument("word", nargs=-1, shell_complete=complete.words)
@form_option
def explain(word: Sequence[str], form: str) -> None:
    """Say what WORD means and what can be done about it: an outcome, a doubt or a term; without one, all of them.

    A word may have a space in it, as `plain calls` does.
    """
    from kernelmark.text import words

    found = [words.find(" ".join(word))] if word else [*words.words()]
    print_as(form, "explain", found, (line for entry in found for line in words.lines(entry)))
