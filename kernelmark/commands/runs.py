"""`kernelmark runs`: what was recorded, newest first, also what is on no board."""

from __future__ import annotations

import click

from kernelmark.commands import complete
from kernelmark.commands.options import form_option, load_settings
from kernelmark.text.printing import print_json, print_lines


@click.command()
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.option("--author", help="Only those of this author.")
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many.")
@form_option
def runs(problem: str | None, author: str | None, last: int, form: str) -> None:
    """List the recorded gradings of PROBLEM, or of every problem, newest first.

    A board shows the best submission of each author. This shows all of them, those that failed too.
    """
    from kernelmark.record.records import newest
    from kernelmark.text import recorded

    settings = load_settings(problem)
    found, total = newest(settings, problem, author=author, last=last)
    if form == "json":
        print_json([run.document() for run in found])
    else:
        print_lines(recorded.runs(found, total, author))
