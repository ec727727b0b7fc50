"""The options that several commands have, and how a command finds the project's settings.

All modules of commands use it. Trusted. Slow imports are inside the functions that need them.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from harness.errors import SubmissionError, UsageError
from harness.files.outside import real
from harness.kinds import DeviceKind, SandboxName

if TYPE_CHECKING:
    from harness.submission import Submission
    from kernelmark.client.connection import Connection
    from kernelmark.project.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
_DEVICES, _SANDBOXES = ("auto", *get_args(DeviceKind)), ("auto", *get_args(SandboxName))


def combined(*options: Callable[[F], F]) -> Callable[[F], F]:
    """A decorator that adds several options, which the help lists in this order."""
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


def device_option(text: str) -> Callable[[F], F]:
    """The option `--device`, with this help text."""
    return click.option("--device", type=click.Choice(_DEVICES), help=text)


def sandbox_option(text: str) -> Callable[[F], F]:
    """The option `--sandbox`, with this help text."""
    return click.option("--sandbox", type=click.Choice(_SANDBOXES), help=text)


def jobs_option(default: str) -> Callable[[F], F]:
    """The option `--jobs`; the text states the default."""
    text = f"How many to grade at a time on each device; 1: one after the other in this process. {default}"
    return click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=text)


def with_option(text: str) -> Callable[[F], F]:
    """The option `--with`, with this help text."""
    path = click.Path(path_type=Path)
    return click.option("--with", "beside", multiple=True, type=path, metavar="OTHER", help=text)


beside_option = with_option(
    "Another file of the submission, a header that FILE includes or a module that it imports; repeatable."
)
from_option = click.option("--from", "server", metavar="SERVER", help="Ask this server, by its name or address.")
form_option = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print it."
)
_SERVER_TEXT = (
    "Which server, by its name or address. [default: the project's, else the only one that you are signed in to]"
)
server_option = click.option("--server", metavar="SERVER", help=_SERVER_TEXT)
shown_server_option = click.option("--from", "--server", "server", metavar="SERVER", help=_SERVER_TEXT)
"""For commands that only show something, which is `--from` in `runs` and `board`."""


def connected(server: str | None) -> Connection:
    """A connection to the server of `--server`, with the user's token for it.

    Raises:
        UsageError: the user is not signed in to it, or it is not clear which one is meant.
    """
    from kernelmark.client import servers

    return servers.chosen(server, load_settings().server.url)


def load_settings(problem: str | None = None, /, **flags: Any) -> Settings:
    """The settings of the project of the working directory, overridden by these flags. If PROBLEM is a path into
    another project, they are those of that project, so that its kernels and its results are used.
    """
    from kernelmark.project.settings import Settings, find_file

    own = problem and os.path.isfile(os.path.join(problem, "problem.toml"))  # noqa: PTH113, PTH118 - any length
    folder = real(Path(problem)) if problem and own else None
    return Settings.load(folder if folder and find_file(folder) else None, **flags)


def refuse_unwritable(option: str, folder: Path | None) -> None:
    """Check before a grading that its files can be written into a folder.

    Raises:
        UsageError: they cannot.
    """
    from leaderboard.record.durable import unwritable

    if folder is not None and (obstacle := unwritable((folder / "file").absolute())):
        raise UsageError(str(folder), f"cannot be written in {obstacle}", f"name another folder with {option}")


def say_frozen(settings: Settings, problem: str | None) -> None:
    """Say on stderr which boards are frozen, so that there may be more results than were printed."""
    from kernelmark.record.records import ledgers
    from kernelmark.text import standings
    from kernelmark.text.terminal import say

    for ledger in ledgers(settings, problem):
        if ledger.until is not None:
            say(f"{ledger.path.stem}: {standings.frozen(ledger.until)}")


def source_of(file: str, language: str | None, author: str) -> Path | Submission:
    """The file to grade, or the submission from stdin if FILE is `-`.

    Raises:
        UsageError: there is no language for stdin, or there is one for a file.
        SubmissionError: stdin is empty, or holds no valid source.
    """
    from harness.submission import MAX_SOURCE_BYTES, Submission

    if file != "-":
        if language is not None:
            raise UsageError("--language", "is for stdin", "leave it out: the suffix of FILE says it, or make FILE `-`")
        return Path(file)
    if language is None:
        raise UsageError("FILE -", "is stdin, which has no suffix", "say what it holds with --language")
    source = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    if not source.strip():
        raise SubmissionError("FILE -", "is stdin, which was empty", "pipe a kernel into it")
    return Submission.of(source, language, author=author, name=f"stdin.{language}")
