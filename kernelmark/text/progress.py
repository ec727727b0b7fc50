"""Shows progress on stderr: a status line on a terminal, otherwise one plain line per stage and case.

The command line makes one reporter per grading and passes its `report` to the judge. Trusted; labels come from the
organizer's problem, but control characters in them are still made visible.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from kernelmark.text.terminal import visible

if TYPE_CHECKING:
    from rich.status import Status

    from harness.judge import Progress


class Reporter:
    """A context manager whose `report` shows one step; without a terminal, each step is printed as a line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._status: Status | None = None
        self._last = ""

    def __enter__(self) -> Self:
        if self._stream.isatty():
            from rich.console import Console
            from rich.status import Status

            self._status = Status("starting", console=Console(file=self._stream, highlight=False))
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def report(self, step: Progress) -> None:
        """Show one step; the same step twice is shown once."""
        line = describe(step)
        if line == self._last:
            return
        self._last = line
        if self._status is None:
            self._print(line)
        else:
            self._show(line)

    def _show(self, line: str) -> None:
        """Put a line in place of the status line."""
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(line))  # Text, not str: a str would be read as markup

    def _print(self, line: str) -> None:
        with suppress(BrokenPipeError):  # the reader is gone; the grading goes on
            print(line, file=self._stream, flush=True)


def describe(step: Progress) -> str:
    """One step as text: `test 3/12 rows=256 cols=1024`; a stage without countable steps shows only its name."""
    count = f"{min(step.done + 1, step.total)}/{step.total}" if step.total > 0 else ""
    return " ".join(part for part in (str(step.stage), count, visible(step.label)) if part)
