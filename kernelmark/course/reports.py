"""The files that `kernelmark grade` and `marks` write about all gradings, and their last lines. Trusted."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from kernelmark.text import marks, report
from kernelmark.text.marks import Marked
from kernelmark.text.printing import say
from kernelmark.text.report import Graded
from kernelmark.text.terminal import counted, visible
from leaderboard.record.durable import write_whole


@dataclass(frozen=True)
class Reports:
    """Where each is to be written; None: not at all. `feedback` is a folder with a file for each author."""

    summary: Path | None
    junit: Path | None
    marks: Path | None
    feedback: Path | None

    def keep(self, marked: Sequence[Marked], new: Sequence[Marked]) -> None:
        """Write all marks so far, and the feedback about those that are `new`, so that a command which is killed loses
        none. What cannot be written is told at the end, by `write`.
        """
        with contextlib.suppress(UsageError):
            if self.marks is not None and new:
                _write(self.marks, _table(marked))
            if self.feedback is not None and new:
                _write_feedback(self.feedback, new)

    def write(self, every: Sequence[Graded], marked: Sequence[Marked], noun: str) -> None:
        """Write them all, and say on stderr how many of each outcome there are, and what was written.

        Raises:
            UsageError: one cannot be written; the others are.
        """
        with contextlib.ExitStack() as stack:
            written: list[str] = []
            stack.callback(_close, every, noun, written)  # the last one
            if self.feedback is not None:
                stack.callback(_write_all_feedback, self.feedback, marked, written)
            for path, content in (
                (self.junit, report.junit(every)),
                (self.summary, report.summary(every).encode()),
                (self.marks, _table(marked)),
            ):
                if path is not None:
                    stack.callback(_write_one, path, content, written)


def _close(every: Sequence[Graded], noun: str, written: Sequence[str]) -> None:
    if every:
        outcomes = (f"{each.outcome} but not recorded" if each.lost else each.outcome for each in every)
        counts = Counter(outcomes).most_common()
        say(f"{counted(len(every), noun)}: {', '.join(f'{count} {outcome}' for outcome, count in counts)}")
    if written:
        *most, last = (visible(each) for each in written)
        say(f"wrote {', '.join(most)} and {last}" if most else f"wrote {last}")


def _table(marked: Sequence[Marked]) -> bytes:
    return marks.table(marked).encode(errors="backslashreplace")


def _write_all_feedback(folder: Path, marked: Sequence[Marked], written: list[str]) -> None:
    _write_feedback(folder, marked)
    written.append(f"{counted(len(marked), 'file')} in {folder}/")


def _write_feedback(folder: Path, marked: Sequence[Marked]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(str(folder), f"cannot be made ({error.strerror})") from error
    for each in marked:
        _write(folder / each.feedback_file, marks.feedback(each).encode())


def _write_one(path: Path, content: bytes, written: list[str]) -> None:
    _write(path, content)
    written.append(str(path))


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path.absolute(), content, replace=True)
    except OSError as error:
        raise UsageError(str(path), f"cannot be written ({error.strerror})") from error
