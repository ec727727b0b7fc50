"""Writes the files about the gradings of a command: the table of marks, feedback to authors, and reports. Trusted."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.problem.schedule import shown
from kernelmark.course.mark import Mark, numbers_of, why_ungraded
from kernelmark.course.platforms import RESULTS, PlatformForms
from kernelmark.course.points import total
from kernelmark.course.report import GradingResult, junit, summary
from kernelmark.text import show, spreadsheet
from kernelmark.text.terminal import counted, labelled, say, visible
from leaderboard.record.durable import unwritable, write_whole

if TYPE_CHECKING:
    from harness.problem.schedule import Delay

COLUMNS = (
    "author", "id", "name", "team", "file", "handed_in", "late_days", "factor", "outcome", "tests_right", "tests",
    "time_ns", "low_ns", "high_ns", "baseline", "speedup", "points", "run", "message",
)  # fmt: skip


def table(marks: Iterable[Mark]) -> str:
    """CSV with a row for each author. Only accepted kernels have times, in ns, and a speedup over the first baseline.
    If such a kernel has no rank, the message says why.

    `factor` is empty if nothing was graded, or the problem accepts nothing that late.
    """
    rows: list[Sequence[object]] = [COLUMNS]
    for mark in marks:
        numbers, run = numbers_of(mark.graded)
        author = (mark.author, mark.id, mark.name, mark.team, mark.graded.path)
        late = _late(mark.delay, mark.graded)
        rows.append((*author, *late, mark.graded.outcome, *numbers, mark.points, run, mark.message))
    return spreadsheet.table(rows)


def feedback(mark: Mark) -> str:
    """The text for an author. It shows only the outcome of hidden tests, and no advice for the person who grades."""
    graded = mark.graded
    lines = [visible(graded.path)] if graded.path else []
    if graded.verdict is not None:
        lines += show.verdict(graded.verdict, graded.table, record=graded.recorded, for_author=True)
    else:
        lines.append(f"not graded: {why_ungraded(mark)}")
    lines += [labelled("note", remark) for remark in mark.remarks]
    if mark.delay is not None and mark.delay.days:
        lines.append(labelled("handed in", f"{shown(mark.delay.handed_in)}, {mark.delay}"))
    if parts := mark.parts:
        lines.append(labelled("points", f"{total(parts)} ({', '.join(f'{part.what} {part}' for part in parts)})"))
    return "\n".join(lines) + "\n"


def _late(delay: Delay | None, graded: GradingResult) -> tuple[object, ...]:
    if delay is None:
        return ("",) * 3
    factor = "" if delay.factor is None or graded.verdict is None else f"{delay.factor:g}"
    return (delay.handed_in.isoformat(timespec="seconds"), delay.days, factor)


@dataclass(frozen=True)
class Reports:
    """The paths of the reports; None: not written. `feedback` is a folder with a file for each author."""

    summary: Path | None = None
    junit: Path | None = None
    marks: Path | None = None
    feedback: Path | None = None
    forms: PlatformForms = field(default_factory=PlatformForms)

    def refuse_unwritable(self) -> None:
        """Check before the gradings that the reports can be written.

        Raises:
            UsageError: one cannot be written.
        """
        sheet, folders = self.forms.gradebook, (self.feedback, self.forms.gradescope)
        files = (self.summary, self.junit, self.marks, sheet.filled_path if sheet else None)
        for path in (*files, *folders):
            if path and (folder := unwritable((path / "file" if path in folders else path).absolute())):
                raise UsageError(str(path), f"cannot be written in {folder}", "name another place")

    def keep(self, marks: Sequence[Mark], new: Sequence[Mark]) -> None:
        """Write all marks so far and the feedback about `new` ones, so that nothing is lost if the command is killed.
        Errors are ignored here, since `write` reports them at the end.
        """
        with contextlib.suppress(UsageError):
            if self.marks is not None and new:
                write(self.marks, _csv(marks))
            for path, content in self._feedback_files(new):
                write(path, content)

    def write(self, results: Sequence[GradingResult], marks: Sequence[Mark], noun: str) -> None:
        """Write all reports. Says on stderr how many results have each outcome, and what was written.

        Raises:
            UsageError: a file cannot be written; the others are.
        """
        written, failed = [], None
        files = ((self.marks, _csv(marks)), (self.summary, summary(results).encode()), (self.junit, junit(results)))
        for path, content in (*files, *self.forms.files(marks)):
            if path is not None:
                try:
                    write(path, content)
                    written += [str(path)] if path.name != RESULTS else []
                except UsageError as error:
                    failed = error
        try:
            for path, content in self._feedback_files(marks):
                write(path, content)
            written += [f"{counted(len(marks), 'file')} in {self.feedback}/"] if self.feedback else []
            gradescope, with_points = self.forms.gradescope, sum(bool(mark.parts) for mark in marks)
            written += [f"{counted(with_points, 'file')} in {gradescope}/"] if gradescope else []
        except UsageError as error:
            failed = error
        if results:
            counts = Counter(f"{result.outcome}{' but not recorded' * result.lost}" for result in results)
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
            say(f"{counted(len(results), noun)}: {outcomes}")
        if written:
            *most, last = map(visible, written)
            say(f"wrote {', '.join(most)} and {last}" if most else f"wrote {last}")
        if failed:
            raise failed

    def _feedback_files(self, marks: Sequence[Mark]) -> Iterator[tuple[Path, bytes]]:
        if self.feedback is not None:
            for mark in marks:
                yield self.feedback / mark.feedback_file, feedback(mark).encode()


def _csv(marks: Sequence[Mark]) -> bytes:
    return spreadsheet.encoded(table(marks))


def write(path: Path, content: bytes) -> None:
    """Write a file atomically, replacing an older one.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_whole(path.absolute(), content, replace=True)
    except OSError as error:
        raise UsageError(str(path), f"cannot be written ({error.strerror})") from error
