"""What all commands share: the project's settings, common options, and printing to stdout and stderr.

`cli` and `organizers` call it. Trusted. Slow imports are done by the functions that need them.
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


def device_option(text: str) -> Callable[[F], F]:
    """The option `--device`, with this help text."""
    return click.option("--device", type=click.Choice(_DEVICES), help=text)


def sandbox_option(text: str) -> Callable[[F], F]:
    """The option `--sandbox`, with this help text."""
    return click.option("--sandbox", type=click.Choice(_SANDBOXES), help=text)


form_option = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print it."
)


def load_settings(**flags: Any) -> Settings:
    """The settings of the project around the working directory, overridden by these flags."""
    from kernelmark.services.settings import Settings

    return Settings.load(**flags)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to stdout."""
    _echo("\n".join(lines))


def print_json(document: object) -> None:
    """Print a document to stdout."""
    _echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def say(line: str) -> None:
    """Print a line to stderr."""
    _echo(line, err=True)


def unexpected(error: Exception) -> str:
    """An unexpected error in one line; its traceback is saved to a file, for a bug report."""
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
    with suppress(BrokenPipeError):  # the reader is gone; the work goes on, and its exit status does not change
        click.echo(text, err=err)
