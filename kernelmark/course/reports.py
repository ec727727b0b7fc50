"""The files that `kernelmark grade` and `marks` write about all gradings, and their last lines. Trusted."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from kernelmark.course import marks, report
from kernelmark.course.marks import Marked
from kernelmark.course.report import GradingResult
from kernelmark.text.printing import say
from kernelmark.text.terminal import counted, visible
from leaderboard.record.durable import write_whole


@dataclass(frozen=True)
class Reports:
    """Where the reports are written; None: not at all. `feedback` is a folder with a file for each author."""

    summary: Path | None = None
    junit: Path | None = None
    marks: Path | None = None
    feedback: Path | None = None

    def keep(self, marked: Sequence[Marked], new: Sequence[Marked]) -> None:
        """Write all marks so far, and the feedback about those that are `new`, so that a command which is killed loses
        none. `write` reports what cannot be written.
        """
        with contextlib.suppress(UsageError):
            if self.marks is not None and new:
                _write(self.marks, _table(marked))
            for path, content in self._feedback_files(new):
                _write(path, content)

    def write(self, every: Sequence[GradingResult], marked: Sequence[Marked], noun: str) -> None:
        """Write them all, and say on stderr how many of each outcome there are, and what was written.

        Raises:
            UsageError: one cannot be written; the others are.
        """
        written, failed = [], None
        files = ((self.marks, _table(marked)), (self.summary, report.summary(every).encode()))
        for path, content in (*files, (self.junit, report.junit(every))):
            if path is not None:
                try:
                    _write(path, content)
                    written.append(str(path))
                except UsageError as error:
                    failed = error
        try:
            for path, content in self._feedback_files(marked):
                _write(path, content)
            written += [f"{counted(len(marked), 'file')} in {self.feedback}/"] if self.feedback else []
        except UsageError as error:
            failed = error
        if every:
            counts = Counter(f"{one.outcome} but not recorded" if one.lost else one.outcome for one in every)
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
            say(f"{counted(len(every), noun)}: {outcomes}")
        if written:
            *most, last = map(visible, written)
            say(f"wrote {', '.join(most)} and {last}" if most else f"wrote {last}")
        if failed:
            raise failed

    def _feedback_files(self, marked: Sequence[Marked]) -> Iterator[tuple[Path, bytes]]:
        if self.feedback is not None:
            for one in marked:
                yield self.feedback / one.feedback_file, marks.feedback(one).encode()


def _table(marked: Sequence[Marked]) -> bytes:
    return marks.table(marked).encode(errors="backslashreplace")


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path.absolute(), content, replace=True)
    except OSError as error:
        raise UsageError(str(path), f"cannot be written ({error.strerror})") from error
