"""Lines of text for terminals: their styles and wrapping, tables, and printing.

All output of `kernelmark` goes through it. Trusted code over hostile text, which goes through `visible` before it
becomes part of a line. In a pipe or a file, a line is a plain string.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Self, TextIO

import click

from harness.errors import HarnessError
from leaderboard.text.plural import counted as counted
from leaderboard.text.visible import visible as visible

INDENT = "  "
_TEXT = 14  # the column in which the text of a labelled line begins
_STYLES = {
    "failed": "red",
    "stopped": "yellow",
    "doubt": "yellow",
    "warning": "yellow",
    "device": "dim",
    "note": "dim",
}
_log = logging.getLogger("kernelmark")


class Line(str):
    """A line with its presentation in a terminal.

    The first `styled` characters, by default all, have the `style` (in the notation of `rich`). A line that is too long
    continues in the column `hang`, by default with its own indentation. A row of a table is broken at the columns in
    which its `cells` begin.
    """

    style: str
    styled: int
    hang: int
    cells: tuple[int, ...]

    def __new__(
        cls, text: str, style: str = "", styled: int | None = None, hang: int | None = None, cells: Sequence[int] = ()
    ) -> Self:
        line = super().__new__(cls, text)
        line.style, line.styled = style, len(text) if styled is None else styled
        line.hang = len(text) - len(text.lstrip()) if hang is None else hang
        line.cells = tuple(cells)
        return line

    def wrapped(self, width: int) -> list[str]:
        """The line as lines of at most `width` characters; a longer word is not broken."""
        rows, begin, margin = [], 0, ""
        for cell, after in zip(self.cells[1:], self.cells[2:], strict=False):
            if len(margin) + after - len(INDENT) - begin > width:
                rows.append(margin + self[begin:cell])
                begin, margin = cell, INDENT * 2
        rows.append(margin + self[begin:])
        wrapper = textwrap.TextWrapper(width, subsequent_indent=" " * self.hang, replace_whitespace=False)
        wrapper.break_long_words = wrapper.break_on_hyphens = False
        return [part for row in rows for part in wrapper.wrap(row)] or [""]


def labelled(label: str, text: str, style: str | None = None) -> Line:
    """A line with a label in its first columns; the label determines the default style."""
    return Line(f"{INDENT}{label:<10}  {text}", _STYLES.get(label, "") if style is None else style, hang=_TEXT)


def rendered(lines: Sequence[str], width: int, *, colours: bool) -> str:
    """Lines for a terminal of this width, with escape sequences for their styles if it has colours."""
    from rich.color import ColorSystem
    from rich.style import Style

    shown = []
    for line in lines:
        line = line if isinstance(line, Line) else Line(line)
        style, left = Style.parse(line.style if colours else ""), line.styled
        for part in line.wrapped(width):
            shown.append(style.render(part[:left], color_system=ColorSystem.STANDARD) + part[left:])
            left = left if line.styled == len(line) else 0
    return "\n".join(shown)


def moves_cursor(stream: TextIO) -> bool:
    """Whether this is a terminal in which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def has_colours(stream: TextIO) -> bool:
    """Whether this is a terminal with colours, and its user wants them (https://no-color.org)."""
    return moves_cursor(stream) and not os.environ.get("NO_COLOR")


def width(stream: TextIO) -> int:
    """The width of the terminal that is printed to, in characters; 80 if it is not a terminal."""
    if not os.environ.get("COLUMNS"):
        with suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or 80
    return shutil.get_terminal_size().columns


def block(text: str) -> Iterator[Line]:
    """Lines of untrusted text (a log, a traceback), indented; only newlines and tabs keep their meaning."""
    for line in text.rstrip("\n").split("\n"):
        yield Line(INDENT * 2 + visible(line.removesuffix("\r").expandtabs(4)), "dim")


def extent(text: str) -> int:
    """How many columns of a terminal a text takes: some characters take two, and some none."""
    if max(text, default="") < "\u0300":
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def columns(
    rows: Sequence[Sequence[str]],
    *,
    head: Sequence[str] = (),
    right: Container[int] = (),
    indent: str = INDENT,
    prose: bool = False,
) -> Iterator[Line]:
    """Rows of cells as aligned lines, below a head if there is one; the columns in `right` are right-aligned.

    In a terminal that is too narrow, cells that do not fit continue below the others; if the last column is `prose`, it
    is wrapped instead.
    """
    every = [*([head] if head else []), *rows]
    widths = [max(map(extent, column)) for column in zip(*every, strict=True)]
    hang = len(indent) + sum(wide + 2 for wide in widths[:-1])
    for number, row in enumerate(every):
        spaces = (" " * (wide - extent(cell)) for cell, wide in zip(row, widths, strict=True))
        cells = [space + c if i in right else c + space for i, (c, space) in enumerate(zip(row, spaces, strict=True))]
        begins = accumulate((len(cell) + 2 for cell in cells), initial=len(indent))
        text, style = (indent + "  ".join(cells)).rstrip(), "dim" if head and number == 0 else ""
        yield Line(text, style, hang=hang) if prose else Line(text, style, cells=[*begins])


def titled(entries: Sequence[tuple[str, str, Iterable[str]]]) -> Iterator[Line]:
    """Names in bold with a title beside each; below a title its further lines, dim, without empty ones."""
    indent = max((len(name) for name, *_ in entries), default=0) + 2
    for name, title, below in entries:
        yield Line(f"{name:<{indent}}{title}", "bold", styled=len(name), hang=indent)
        yield from (Line(" " * indent + line, "dim") for line in below if line)


def warn(text: str) -> None:
    """Log a warning; without a logging configuration it goes to stderr."""
    _log.warning("kernelmark: warning: %s", visible(text))


def unexpected(error: Exception) -> str:
    """An unexpected error in one line; its traceback is saved to a file."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("KERNELMARK_DEBUG"):
        with suppress(BrokenPipeError):  # the reader is gone; the work goes on
            print(text.rstrip("\n"), file=sys.stderr, flush=True)
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


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines to stdout, or to stderr."""
    stream, shown = sys.stderr if err else sys.stdout, list(lines)
    if moves_cursor(stream):
        print_text(rendered(shown, width(stream), colours=has_colours(stream)), err=err)
    else:
        print_text("\n".join(shown), err=err)


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text as it is, for programs or to be copied."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:  # the reader is gone; the work goes on, and its exit status does not change
        pass
    except OSError as error:
        if not err:  # a progress line or an error that is lost stops nothing
            raise HarnessError(f"stdout cannot be written ({error.strerror})") from None


def say(line: str) -> None:
    """Print a line to stderr."""
    print_lines([Line(line, hang=2)], err=True)


def fail(message: str, status: int) -> int:
    """Print an error to stderr, as one line; returns the exit status."""
    say(f"kernelmark: error: {visible(' '.join(message.split()))}")
    return status
