"""`kernelmark export`: writes the record as tables, or a submission in the format of another project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from typing_extensions import TypedDict

from harness.errors import UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import form_option, load_settings, say_frozen
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import print_text, say, visible

RECORD = "parquet"


@click.command("export")
@click.argument("problem", required=False, shell_complete=complete.problems)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--form",
    "wanted",
    default=RECORD,
    metavar="FORM",
    help="parquet: the record (the default); popcorn: FILE as a submission.py for gpu-mode; kernelbench: FILE with a "
    "class ModelNew.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Where to write it: a folder for the record, a file for FILE. [default for FILE: stdout]",
)
@click.option("--force", is_flag=True, help="Replace the file at --out.")
@click.option(
    "--case",
    metavar="NAME",
    help="For C++ and CUDA: take parameters that the inputs' shapes do not determine from this test or benchmark.",
)
@click.option(
    "--leaderboard",
    metavar="NAME",
    help="popcorn: which leaderboard. [default: the one that PROBLEM came from]",
)
@click.option("--gpu", "gpus", multiple=True, metavar="NAME", help="popcorn: on which GPU it is to run; repeatable.")
@form_option
def export(problem: str | None, file: Path | None, wanted: str, out: Path | None, form: str, **flags: Any) -> int:
    """Write the record as Parquet and JSON lines, or FILE as a file that another project takes.

    The record is that of PROBLEM, or of every problem, with a schema. With --form popcorn or kernelbench, FILE is a
    submission of PROBLEM, which was imported from gpu-mode or KernelBench, and what is written runs without kernelmark.
    FILE is read and not run: `kernelmark check` says whether it is right.

    Exit status: 0, or 2 if it cannot be written in that form.
    """
    if wanted == RECORD:
        if file is not None or out is None:
            what = "is written to a folder" if out is None else "is of no FILE"
            raise UsageError("the record", what, "name one with --out; for a kernel, give --form")
        if given := next((name for name, value in flags.items() if value), None):
            raise UsageError(f"--{given.removesuffix('s')}", "is for a kernel", "leave it out, or give --form and FILE")
        _record(problem, out, form)
    elif problem is None or file is None:
        raise UsageError(f"--form {wanted}", "is for a kernel", "name PROBLEM and FILE")
    else:
        _kernel(problem, file, wanted, out, **flags)
    return 0


class ExportDocument(TypedDict):
    """The numbers of written rows, and the folder."""

    verdicts: int
    cases: int
    out: str


def _record(problem: str | None, out: Path, form: str) -> None:
    from kernelmark.record.records import ledgers, tables

    try:
        from leaderboard.publishing import export as tabular
    except ImportError as error:
        raise UsageError("export", "needs pyarrow", "pip install 'kernelmark[export]'") from error
    settings = load_settings(problem)
    entries = (entry for recorded in ledgers(settings, problem) for entry in recorded.read())
    try:
        verdicts, cases = tabular.export(entries, tables(settings, problem), out, settings.teams)
    except OSError as error:
        raise UsageError(str(out), f"cannot be written to ({error.strerror})") from error
    say_frozen(settings, problem)
    document: ExportDocument = {"verdicts": verdicts, "cases": cases, "out": str(out)}
    print_as(form, "export", document, [f"{verdicts} verdicts and {cases} cases in {out}"])


def _kernel(problem: str, file: Path, wanted: str, out: Path | None, *, force: bool, **flags: Any) -> None:
    from harness.submission import Submission
    from kernelmark.interop import exporting
    from kernelmark.project.problems import find_problem
    from leaderboard.record.durable import write_whole

    if out is not None and out.exists() and not force:
        raise UsageError(str(out), "exists", "name another file, or replace it with --force")
    settings = load_settings(problem)
    submission = Submission.read(file, settings.author_or_default())
    found = find_problem(settings, problem)
    exported = exporting.export(found, submission, wanted, **flags)
    if out is None:
        print_text(exported.text.rstrip("\n"))
    else:
        try:
            write_whole(out, exported.text.encode(), replace=force)
        except OSError as error:
            raise UsageError(str(out), f"cannot be written ({error.strerror})", "name another file") from None
    for warning in exported.warnings:
        say(f"kernelmark: warning: {visible(warning)}")
