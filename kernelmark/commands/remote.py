"""Grading on a server: what `submit`, `check` and `bench` do with --to, and the commands `watch`, `cancel` and `queue`.

Trusted; a server's text is not. Slow imports are done by the functions that need them.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.errors import KernelmarkError, UsageError
from kernelmark.commands.help import Group
from kernelmark.commands.left_out import files_of, say_left_out
from kernelmark.commands.options import (
    connected,
    form_option,
    load_settings,
    server_option,
    shown_server_option,
    source_of,
)
from kernelmark.project.documents import print_as, print_document
from kernelmark.text.terminal import print_lines, print_text, say

if TYPE_CHECKING:
    from harness.verdict import Check
    from kernelmark.client.connection import Connection
    from kernelmark.service.submissions import Mode, SubmissionRequest, SubmissionStatus
    from kernelmark.text.progress import Reporter
    from leaderboard.standings.ranking import Table

F = TypeVar("F", bound=Callable[..., Any])

NOT_AWAITED = 10
"""The exit status if it was submitted, and nobody waited for the result."""


def server_options(command: F) -> F:
    """Add the options of grading on a server."""
    for decorate in (
        click.option("--no-wait", is_flag=True, help="With a server: print the run, and do not wait for the result."),
        click.option("--again", is_flag=True, help="With a server: grade it even if the same was graded within a day."),
        click.option("--device-name", "pool", metavar="NAME", help="With a server: on which of its devices."),
        click.option(
            "--to",
            metavar="SERVER",
            help="Grade on this server, by its name or address. [default: `url` in [server] of kernelmark.toml]",
        ),
    ):
        command = decorate(command)
    return command


@dataclass(frozen=True)
class RemoteGrading:
    """The server on which a command grades, and how."""

    connection: Connection
    pool: str | None
    again: bool
    wait: bool


def server_of(given: dict[str, Any], *, here: bool) -> RemoteGrading | None:
    """Take what `server_options` gave, and say on which server to grade; None: on this machine.

    Raises:
        UsageError: the user is not signed in to the server, or options contradict each other.
    """
    to, pool, again, no_wait = (given.pop(name) for name in ("to", "pool", "again", "no_wait"))
    if here and to is not None:
        raise UsageError("--to and --here", "cannot be given together", "give one of them")
    connection = None if here else _connection(to, given["problem"])
    if connection is not None:
        return RemoteGrading(connection, pool, again, not no_wait)
    for flag, value in (("--device-name", pool), ("--again", again), ("--no-wait", no_wait)):
        if value:
            raise UsageError(flag, "is for a server", "name one with --to, or leave it out")
    return None


def _connection(to: str | None, problem: str) -> Connection | None:
    if to is not None:
        from kernelmark.client import servers

        return servers.connection(to)
    origin = load_settings(problem).server.url
    return None if origin is None else _projects_own(origin)


def _projects_own(origin: str) -> Connection | None:
    """To the server that the project names; None: the user would rather grade on this machine.

    A project that was cloned may name any server, so nothing is sent to one that the user has never signed in to.
    """
    from kernelmark.client import servers

    if (found := servers.at(origin, servers.known())) is not None:
        return found[1].connection()
    where, what = f"server {origin}", "is named by this project, and you are not signed in there"
    if sys.stdin.isatty() and click.confirm(f"The {where} {what}. Grade on this machine instead?", err=True):
        return None
    remedy = f"if you trust it, `kernelmark login {origin}` signs in; --here grades on this machine"
    raise UsageError(where, what, remedy)


def grade(server: RemoteGrading, given: dict[str, Any], mode: Mode, form: str, local: Mapping[str, object]) -> int:
    """Send a submission, follow it to its end, and print what it was found to be; returns the exit status.

    Args:
        given: the arguments and options of the command line.
        local: further options that have a meaning only where it is graded on this machine, with their values.

    Raises:
        UsageError: an option that was given is for this machine, or the server refused it.
        HarnessError: the server cannot be reached, or could not grade it.
    """
    from kernelmark.client.lines import received
    from kernelmark.client.submitting import submit

    kept = {"--sandbox": given["sandbox"], "--device": given["device"], "--author": given["author"]}
    for flag, value in {**kept, "--baseline": given.get("baselines"), **local}.items():
        if value:
            raise UsageError(flag, "is for grading on this machine", "leave it out, or grade here with --here")
    request = _request(server, given, mode)
    status, new = submit(server.connection, request)
    say(received(status, new=new))
    if server.wait:
        return awaited(server.connection, status, form, files_of(given))
    if form == "json":
        print_document("submission", status)
    else:
        print_text(status.run)
    return NOT_AWAITED


def _request(server: RemoteGrading, given: dict[str, Any], mode: Mode) -> SubmissionRequest:
    from pydantic import ValidationError

    from harness.submission import Submission
    from kernelmark.service.submissions import SubmissionRequest

    problem, author = given["problem"], "client"  # the server knows who submits
    source = source_of(given["file"], given["language"], author)
    submission = Submission.read(source, author, given["beside"]) if isinstance(source, Path) else source
    try:
        return SubmissionRequest.model_validate(
            {
                "problem": Path(problem).resolve().name if Path(problem).is_dir() else problem,
                "language": submission.language,
                "source": b64encode(submission.source),
                "beside": [{"name": name, "content": b64encode(content)} for name, content in submission.beside],
                "mode": mode,
                "effort": given.get("effort") or "default",  # the settings here say nothing about a server
                "pool": server.pool,
                "again": server.again,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(str(first["loc"][0]), f"{str(first['input'])[:80]!r} is not valid", first["msg"]) from None


def awaited(connection: Connection, status: SubmissionStatus, form: str, files: Sequence[Path] = ()) -> int:
    """Follow a submission, of these files here, to its end, and print what it was found to be; returns the exit status.

    Raises:
        UsageError: it was cancelled.
        HarnessError: it could not be graded.
    """
    from kernelmark.client import following
    from kernelmark.client.connection import Unreachable
    from kernelmark.text.progress import Reporter

    try:
        with Reporter() as reporter:
            status = following.follow(connection, status, lambda now: _tell(reporter, now))
            result = following.result(connection, status)
            table = _table(connection, status, result)
    except (KeyboardInterrupt, Unreachable) as error:
        why = "" if isinstance(error, KeyboardInterrupt) else f"{error}; "
        say(f"{why}it is submitted, and goes on: `kernelmark watch {status.run} --server {connection.origin}`")
        if form == "json":
            print_document("submission", status)
        return NOT_AWAITED
    _print(status, result, table, form)
    say_left_out(result, files)
    return result.outcome.exit_code


def _tell(reporter: Reporter, status: SubmissionStatus | None) -> None:
    from kernelmark.client import lines

    if status is None:
        reporter.note("no answer from the server; trying again")
    elif status.state == "leased" and status.progress is not None:
        reporter.report(status.progress)
    else:
        reporter.note(lines.waiting(status))


def _print(status: SubmissionStatus, result: Check, table: Table | None, form: str) -> None:
    from harness.verdict import Verdict
    from kernelmark.client.connection import shown
    from kernelmark.text import show

    if isinstance(result, Verdict):
        if form == "json":
            print_document("verdict", result.to_json())
        else:
            recorded, left = status.mode == "submit", shown(status.left)
            print_lines(show.verdict(result, table, left, record=recorded, for_author=True))
    elif form == "json":
        print_document("check", result.model_dump_json(exclude_none=True))
    else:
        print_lines(show.check(result))


def _table(connection: Connection, status: SubmissionStatus, result: Check) -> Table | None:
    """The table in which a recorded verdict is; None if there is none, or it cannot be had."""
    from harness.verdict import Verdict

    if status.mode != "submit" or not isinstance(result, Verdict) or result.score is None:
        return None
    from kernelmark.client import reading
    from leaderboard.record.fields import TableKey

    author, tables = result.submission.author, list["Table"]()
    with suppress(KernelmarkError):  # the result is there, and is shown without its place
        tables = reading.tables(connection, status.problem)
    for table in tables:
        if table.key == TableKey.of(result) and any(
            row.run == result.run or row.belongs_to(author) for row in (*table.rows, *table.set_aside)
        ):
            return table
    return None


@click.command()
@click.argument("run", required=False)
@shown_server_option
@form_option
def watch(run: str | None, server: str | None, form: str) -> int:
    """Follow the submission RUN on a server until it has ended, and show the result; by default your newest.

    RUN is its id, or the id's first digits. Exit status: as for `submit`.
    """
    from kernelmark.client import following, lines, reading

    with connected(server) as connection:
        if run is None:
            newest = reading.own(connection, last=1)
            if not newest:
                raise UsageError("RUN", "there is none: you have submitted nothing there", "submit something first")
            [status] = newest
        else:
            status = following.status_of(connection, reading.whole_run(connection, run))
        say(f"run {status.run}, {status.problem}, {status.mode}: {lines.ended(status)}")
        return awaited(connection, status, form)


@click.command()
@click.argument("run")
@server_option
@form_option
def cancel(run: str, server: str | None, form: str) -> None:
    """Cancel the submission RUN on a server. One that has begun counts as a grading; one that waits does not.

    RUN is its id, or the id's first digits.
    """
    from kernelmark.client import following, lines, reading

    with connected(server) as connection:
        whole = reading.whole_run(connection, run)
        connection.delete(f"submissions/{whole}")
        status = following.status_of(connection, whole)
        under_way = f"ends in a few seconds; `kernelmark watch {status.run}` shows how"
        said = under_way if status.state == "leased" else lines.ended(status)
        print_as(form, "submission", status, [f"run {status.run}: {said}"])


@click.group(cls=Group, invoke_without_command=True)
@shown_server_option
@form_option
@click.pass_context
def queue(context: click.Context, server: str | None, form: str) -> None:
    """Show what a server's devices do, how much waits for them, and where your submissions are."""
    if context.invoked_subcommand is not None:
        return
    from kernelmark.client import lines, reading
    from kernelmark.service.submissions import QueueDocument, QueueStatus

    with connected(server) as connection:
        found, mine = connection.get("queue", QueueStatus), reading.own(connection, last=200, only_open=True)
        document = QueueDocument(**dict(found), yours=tuple(mine))
        print_as(form, "queue", document, lines.queue(found, mine))
