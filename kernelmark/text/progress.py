"""Shows progress on stderr: a bar on a terminal, otherwise one plain line per stage or per submission.

Each command makes one reporter and passes its `report` to the judge. Trusted; labels and names may be hostile text, so
control characters in them are made visible.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from kernelmark.text.terminal import moves_cursor, visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from harness.verdict import Stage


class ProgressStep(Protocol):
    """A step of a grading, from a judge here or from a server: item `done` of `total` of a stage is about to begin."""

    @property
    def stage(self) -> Stage: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def label(self) -> str: ...


_PER_SECOND = 4  # how often the bar is drawn; on a CPU, kernels are timed meanwhile


class Reporter:
    """A context manager whose `report` shows one step. Without a terminal, each stage is printed as a line.

    `usual_s` returns how long a grading usually takes, in seconds from its build to its end, or None.
    """

    def __init__(self, stream: TextIO | None = None, usual_s: Callable[[], float | None] = lambda: None) -> None:
        self._stream = stream or sys.stderr
        self._bar: Bar | None = None
        self._last = ""
        self._ask_usual = usual_s
        self._usual_s: float | None = None
        self._started = time.monotonic()
        self._built: float | None = None

    def __enter__(self) -> Self:
        if moves_cursor(self._stream):
            self._usual_s = self._ask_usual()
            self._bar = _bar(self._stream, self._clock)
            self._bar.add_task("starting", total=None)
            try:
                self._bar.start()
            except BaseException:  # Ctrl-C at once: there is no `__exit__` yet, and the cursor is hidden
                self._bar.stop()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            with suppress(OSError):  # the terminal was closed
                self._bar.stop()

    def report(self, step: ProgressStep) -> None:
        """Show one step; the same step twice is shown once."""
        line = stage(step) if self._bar is None else describe(step)
        if line != self._last and step.stage == "build" and step.total:  # waiting for other gradings is over
            self._built = time.monotonic()
        self.note(line, step.done, step.total)

    def note(self, line: str, done: int = 0, total: int = 0) -> None:
        """Show a line, for example that this waits for something; the same line twice is shown once."""
        if line == self._last:
            return
        self._last = line
        if self._bar is None:
            self._print(line)
        else:
            self._show(line, done, total)

    def _show(self, line: str, done: int, total: int) -> None:
        """Replace the text of the bar. Without a total, the bar shows only that work is in progress."""
        if self._bar is not None:
            [task] = self._bar.tasks
            task.total = total or None  # for `update`, None means as before
            self._bar.update(task.id, description=line, completed=done)

    def _print(self, line: str) -> None:
        with suppress(OSError):  # the reader is gone, or the disk is full; the grading goes on
            print(line, file=self._stream, flush=True)

    def _clock(self) -> str:
        """The time since the start, and the time that is left if the grading takes as long as usual."""
        now = time.monotonic()
        elapsed = _minutes(now - self._started)
        if self._usual_s is None or self._built is None:
            return elapsed
        left = self._usual_s - (now - self._built)
        return f"{elapsed}, about {_minutes(left)} left" if left >= 1 else f"{elapsed}, longer than usual"


def describe(step: ProgressStep) -> str:
    """One step as text: `test 3/12 rows=256 cols=1024`; a stage without countable steps shows only its name."""
    count = f"{min(step.done + 1, step.total)}/{step.total}" if step.total > 0 else ""
    return " ".join(part for part in (str(step.stage), count, visible(step.label)) if part)


def stage(step: ProgressStep) -> str:
    """One step as text for a log: `test: 12 cases`, the same for every case of a stage."""
    return f"{step.stage}: {step.total} cases" if step.total > 1 else describe(step)


def _bar(stream: TextIO, clock: Callable[[], str]) -> Bar:
    """A bar for one task, which disappears when it stops; without colours if the user wants none."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class ClockColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(clock())

    console = Console(file=stream, force_terminal=True, highlight=False)
    text = TextColumn("{task.description}", markup=False)  # labels are not markup
    columns = SpinnerColumn(), BarColumn(20, complete_style="cyan", pulse_style="cyan"), ClockColumn(), text
    return Bar(*columns, console=console, transient=True, refresh_per_second=_PER_SECOND)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class BatchReporter(Reporter):
    """A reporter of `total` submissions; the total may grow. Any thread may call it."""

    def __init__(self, total: int = 0, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._total, self._done = total, 0
        self._lock = threading.RLock()

    def expect(self, more: int) -> None:
        """Add submissions to the total."""
        with self._lock:
            self._total += more
            self._count()

    def report(self, step: ProgressStep) -> None:
        """Show a step of the only submission that is being graded."""
        with self._lock:
            if self._bar is None:
                super().report(step)
            else:
                self._count(f": {describe(step)}")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        with self._lock, self.hidden():
            self._print(visible(line))

    def finished(self, name: str, result: str, *, quiet: bool = False) -> None:
        """Count one submission, and print its result unless `quiet`."""
        with self._lock:
            self._done += 1
            self._last = ""
            if not quiet:
                self.say(f"{self._done}/{self._total} {name}: {result}")
            self._count()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the bar, so that something can be printed."""
        if self._bar is not None:
            self._bar.stop()
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.start()

    def _count(self, step: str = "") -> None:
        minutes = (time.monotonic() - self._started) / 60
        left = self._total - self._done
        rate = f"{self._done / minutes if minutes else 0:.1f} a minute"
        self._show(f"{self._done} done, {rate}, {left} left{step}", self._done, self._total)
