"""What the commands of every group share: the project's settings, `--format`, and how an answer gets to stdout.

`cli` and `organizers` call it. Trusted. What is slow to import is imported when it is called.
"""

from __future__ import annotations

import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from harness.kinds import DeviceKind, SandboxName

if TYPE_CHECKING:
    from kernelmark.services.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
_DEVICES, _SANDBOXES = ("auto", *get_args(DeviceKind)), ("auto", *get_args(SandboxName))


def device_option(tells: str) -> Callable[[F], F]:
    """`--device`, for what the command does there."""
    return click.option("--device", type=click.Choice(_DEVICES), help=tells)


def sandbox_option(tells: str) -> Callable[[F], F]:
    """`--sandbox`, for what the command runs in it."""
    return click.option("--sandbox", type=click.Choice(_SANDBOXES), help=tells)


form_option = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print it."
)


def load_settings(**flags: Any) -> Settings:
    """The settings of the project around the working directory, with these flags above them."""
    from kernelmark.services.settings import Settings

    return Settings.load(**flags)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to stdout."""
    _echo("\n".join(lines))


def print_json(document: object) -> None:
    """Print a document to stdout."""
    _echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def say(line: str) -> None:
    """Print a line to stderr, for the person who waits."""
    _echo(line, err=True)


def unexpected(error: Exception) -> str:
    """An error that nobody foresaw, in one line; its traceback is kept where a report can quote it."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("KERNELMARK_DEBUG"):
        say(text.rstrip("\n"))
        where = "the traceback is above"
    else:
        try:
            descriptor, name = tempfile.mkstemp(prefix="kernelmark-", suffix=".txt")
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            where = f"traceback in {name}"
        except OSError as unwritten:
            where = f"its traceback cannot be written ({unwritten.strerror}); KERNELMARK_DEBUG=1 prints it"
    return " ".join(f"unexpected {type(error).__name__}: {error}; {where}".split())


def _echo(text: str, *, err: bool = False) -> None:
    with suppress(BrokenPipeError):  # whoever read it has gone; the work goes on, and its exit status stays
        click.echo(text, err=err)
