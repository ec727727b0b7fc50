"""Prints to stdout and stderr, as all commands do: wrapped and styled on a terminal, plain elsewhere. Trusted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import suppress

import click

from kernelmark.text import terminal
from kernelmark.text.terminal import Line, has_colours, moves_cursor, visible


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines to stdout, or to stderr."""
    stream, shown = sys.stderr if err else sys.stdout, list(lines)
    if moves_cursor(stream):
        print_text(terminal.rendered(shown, terminal.width(stream), colours=has_colours(stream)), err=err)
    else:
        print_text("\n".join(shown), err=err)


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text as it is, for programs or to be copied."""
    with suppress(BrokenPipeError):  # the reader is gone; the work goes on, and its exit status does not change
        click.echo(text, err=err)


def print_json(document: object) -> None:
    """Print a document to stdout."""
    print_text(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def say(line: str) -> None:
    """Print a line to stderr."""
    print_lines([Line(line, hang=2)], err=True)


def fail(message: str, status: int) -> int:
    """Print an error to stderr, as one line; returns the exit status."""
    say(f"kernelmark: error: {visible(' '.join(message.split()))}")
    return status
