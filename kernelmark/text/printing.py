"""Prints to stdout and stderr, as all commands do. Trusted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kernelmark.text.terminal import has_colours, visible

if TYPE_CHECKING:
    from kernelmark.text.colours import Colouring


def print_lines(lines: Iterable[str], colouring: Colouring | None = None) -> None:
    """Print lines to stdout; on a terminal with these colours."""
    _echo("\n".join(colouring(lines) if colouring and has_colours(sys.stdout) else lines))


def print_json(document: object) -> None:
    """Print a document to stdout."""
    _echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def say(line: str) -> None:
    """Print a line to stderr."""
    _echo(line, err=True)


def fail(message: str, status: int) -> int:
    """Print an error to stderr, as one line; returns the exit status."""
    say(f"kernelmark: error: {visible(' '.join(message.split()))}")
    return status


def _echo(text: str, *, err: bool = False) -> None:
    with suppress(BrokenPipeError):  # the reader is gone; the work goes on, and its exit status does not change
        click.echo(text, err=err)
