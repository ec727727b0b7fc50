"""The commands of those who run a competition: moderation, and everything that is not a grading at a keyboard.

`cli` adds them to `kernelmark`. Trusted. What is slow to import is imported by the command that needs it.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from harness.errors import HarnessError, UsageError
from kernelmark.printing import form_option, load_settings, print_json, print_lines
from kernelmark.text import visible


@click.group()
def moderate() -> None:
    """Say something about a recorded run; it is appended, and nothing is ever edited or removed."""


def _moderating(action: str, text: str) -> click.Command:
    @click.argument("run")
    @click.option("--actor", required=True, help="Who says so.")
    @click.option("--reason", required=True, help="Why; it stands on the board.")
    @form_option
    def command(run: str, actor: str, reason: str, form: str) -> None:
        from kernelmark import show
        from kernelmark.project import moderate

        event = moderate(load_settings(), run, action, actor, reason)  # type: ignore[arg-type]  # one of the three below
        print_lines([event.to_json()] if form == "json" else [event.run, *show.moderation([event])])

    return click.command(action, help=text)(command)


moderate.add_command(_moderating("disqualify", "Take RUN from the ranking; `show` still shows it."))
moderate.add_command(_moderating("reinstate", "Let RUN rank again, or for the first time if it came late."))
moderate.add_command(_moderating("annotate", "Say something about RUN; its state stays as it is."))


@click.command()
@form_option
def verify(form: str) -> int:
    """Examine every ledger, its chain, and the archived sources; list all faults.

    Exit status: 0 if nothing is wrong, 7 if something is.
    """
    from kernelmark.project import current, ledgers
    from leaderboard.inspection import inspect

    settings = load_settings()
    problems, archive = current(settings).problems, settings.locate("archive")
    found = [inspect(ledger.path, archive, problems) for ledger in ledgers(settings)]
    faults = [fault for each in found for fault in each.faults]
    if form == "json":
        print_json([asdict(each) for each in found])
    else:
        for fault in faults:
            print_lines([visible(str(fault))])
        for each in found:
            verdicts = f"{each.known} verdicts on the problem as it is, {each.stale} on earlier versions of it"
            unknown = f", {each.unknown} on a problem that is not here" if each.unknown else ""
            print_lines([f"{each.path.name}: {each.entries} entries, {verdicts}{unknown}"])
    return HarnessError.exit_code if faults else 0


@click.command()
@click.argument("problem", required=False)
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="The folder to write to.")
@form_option
def export(problem: str | None, out: Path, form: str) -> None:
    """Write the record of PROBLEM, or of every problem, as Parquet and JSON lines, with their schema."""
    from kernelmark.project import ledgers, tables

    try:
        from leaderboard import export as tabular
    except ImportError as error:
        raise UsageError("export", "needs pyarrow", "pip install 'kernelmark[export]'") from error
    settings = load_settings()
    entries = (entry for ledger in ledgers(settings, problem) for entry in ledger.read())
    try:
        verdicts, cases = tabular.export(entries, tables(settings, problem), out)
    except OSError as error:
        raise UsageError(str(out), f"cannot be written to ({error.strerror})") from error
    document = {"verdicts": verdicts, "cases": cases, "out": str(out)}
    print_json(document) if form == "json" else print_lines([f"{verdicts} verdicts and {cases} cases in {out}"])


COMMANDS: tuple[click.Command, ...] = (moderate, verify, export)
