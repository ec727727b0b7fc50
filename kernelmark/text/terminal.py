"""Formats text for terminals: makes untrusted text visible, and aligns rows.

Everything that `kernelmark` prints uses it. Trusted code over hostile text. Standard library only, so errors can be
printed when nothing else can be imported.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TextIO

from leaderboard.text.plural import counted as counted
from leaderboard.text.visible import visible as visible

INDENT = "  "
_log = logging.getLogger("kernelmark")


def moves_cursor(stream: TextIO) -> bool:
    """Whether this is a terminal in which a line can be drawn anew."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def has_colours(stream: TextIO) -> bool:
    """Whether this is a terminal with colours, and its user wants them (https://no-color.org)."""
    return moves_cursor(stream) and not os.environ.get("NO_COLOR")


def width() -> int:
    """The width of the terminal that is printed to, in characters; 80 if it is not a terminal."""
    return shutil.get_terminal_size().columns


def block(text: str) -> Iterator[str]:
    """Several lines of untrusted text (a log, a traceback), indented; only newlines and tabs keep their meaning."""
    for line in text.rstrip("\n").split("\n"):
        yield INDENT * 2 + visible(line.removesuffix("\r").expandtabs(4))


def columns(
    rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), indent: str = INDENT
) -> Iterator[str]:
    """Rows of cells as aligned lines; the columns in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield (indent + "  ".join(cells)).rstrip()


def warn(text: str) -> None:
    """Log a warning; without a logging configuration it goes to stderr."""
    _log.warning("kernelmark: warning: %s", visible(text))
