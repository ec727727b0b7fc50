"""`kernelmark problems`: lists, shows, creates and tests the problems of a project."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from harness.errors import LedgerError, ProblemError, UsageError
from harness.shared.call import STYLES, Style
from kernelmark.commands import complete
from kernelmark.commands.help import Group
from kernelmark.commands.options import (
    device_option,
    form_option,
    from_option,
    jobs_option,
    load_settings,
    sandbox_option,
)
from kernelmark.project.documents import portable_here, print_as, print_document
from kernelmark.text.terminal import fail, print_lines, print_text, say, width


@click.group(cls=Group)
def problems() -> None:
    """The problems of this project."""


@problems.command("list")
@from_option
@form_option
def problems_list(server: str | None, form: str) -> int:
    """List the problems, one line each, with tags, deadlines and your place on each board.

    If there are limits a day, the last line says what they leave to you.

    Exit status: 0, or 2 if one cannot be read, 7 if a board cannot; the others are still listed.
    """
    from kernelmark.text import problems as text

    if server is not None:
        from kernelmark.client import reading, servers

        with servers.reading(server) as connection:
            there = reading.problems(connection)
        print_as(form, "problems", there, text.lines(there))
        return 0
    from kernelmark.project.problems import problem_directories, read_problem, refuse_without_project
    from kernelmark.record.allowance import Allowance
    from kernelmark.record.records import listed, places

    settings = load_settings()
    refuse_without_project(settings)
    loaded, status = [], 0
    for directory in problem_directories(settings):
        try:
            loaded.append(read_problem(settings, directory))
        except ProblemError as error:
            status = fail(str(error), error.exit_code)
    author = settings.author_or_default()
    try:
        stands = places(settings)
    except LedgerError as error:
        stands, status = {}, fail(str(error), error.exit_code)
    found = listed(settings, loaded, stands, author, Allowance(settings).left(author) if not status else "")
    if form == "json" or loaded or not status:
        print_as(form, "problems", found, text.lines(found))
    return status


@problems.command("show")
@click.argument("problem", shell_complete=complete.problems)
@from_option
@form_option
def problems_show(problem: str, server: str | None, form: str) -> None:
    """Print what PROBLEM asks for: its statement, the entry points in Python and C, tensors and what fills them,
    tolerance, cases, and the baselines' times that were recorded on this device.
    """
    if server is not None:
        from kernelmark.client import reading, servers

        if form == "json":
            raise UsageError("--format json", "is for the project here", "ask GET /api/v1/problems/PROBLEM")
        with servers.reading(server) as connection:
            print_lines(reading.problem_text(connection, problem))
        return
    from kernelmark.authoring.sheet import sheet
    from kernelmark.project.competition import state
    from kernelmark.project.problems import find_problem
    from kernelmark.record.records import notices_of
    from kernelmark.text import problem as text
    from kernelmark.text.problems import announced

    settings = load_settings(problem)
    loaded = find_problem(settings, problem)
    if form == "json":
        print_document("problem", text.document(loaded))
    else:
        found = sheet(settings, loaded)
        now, columns = datetime.now(UTC), min(text.WIDTH, width(sys.stdout))
        print_lines(text.lines(loaded, found.statement, found.entry_points, found.baselines, now, columns))
        if notices := notices_of(state(settings, loaded.slug, now)):
            print_lines(announced(notices, about=False))


@problems.command("new")
@click.argument("slug")
@click.option("--style", type=click.Choice(STYLES), default="writes", help="How Python submissions are called.")
def problems_new(slug: str, style: Style) -> None:
    """Write the files of a new problem, complete except for its definition."""
    from kernelmark.authoring import skeleton

    print_lines([os.path.relpath(path) for path in skeleton.write(load_settings(), slug, style)])
    say(f"fill in reference.py and README.md, then run `kernelmark problems lint {slug}`")


@problems.command("lint")
@click.argument("problem", nargs=-1, shell_complete=complete.problems)
@form_option
@click.option(
    "--no-samples", is_flag=True, help="Try the null kernels only; no sandbox is needed, except for imported problems."
)
@sandbox_option("Where the samples run.")
@device_option("On which device the samples run.")
@jobs_option("[default: by the processors that there are]")
def problems_lint(
    problem: Sequence[str], form: str, no_samples: bool, sandbox: str | None, device: str | None, jobs: int | None
) -> int:
    """Test PROBLEM (default: all): no kernel that skips the work or uses too low a precision may pass.

    Exit status: 0 if nothing is wrong with the problems, 2 if something is, 7 if one could not be tested.
    """
    from kernelmark.authoring import lint
    from kernelmark.project.problems import find_directory, problem_directories, refuse_without_project
    from kernelmark.text.progress import BatchReporter

    settings = load_settings(sandbox=sandbox, device=device)
    if not problem:
        refuse_without_project(settings)
    directories = [find_directory(settings, name) for name in problem] or problem_directories(settings)
    with BatchReporter() as reporter:
        reports = lint.lint(settings, directories, with_samples=not no_samples, reporter=reporter, jobs=jobs)
    print_as(form, "lint", lint.document(reports), map(portable_here, lint.lines(reports)))
    status = UsageError.exit_code if any(report.wrong for report in reports) else 0
    for report in reports:
        if report.failure is not None:
            status = fail(f"{report.problem}: {report.failure}", report.failure.exit_code)
    return status


@problems.command("schema")
def problems_schema() -> None:
    """Print the JSON Schema of problem.toml, for editors."""
    from harness.problem.spec import schema_document

    print_text(schema_document().rstrip("\n"))
