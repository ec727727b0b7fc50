"""Writes the files about several gradings: a table for a gradebook, feedback to authors, and reports. Trusted."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import UsageError
from harness.problem.schedule import shown
from harness.verdict import Outcome
from kernelmark.course.platforms import RESULTS, PlatformForms
from kernelmark.course.points import Marking, Points, number, total
from kernelmark.course.report import GradingResult, junit, summary
from kernelmark.text import show, spreadsheet, standings
from kernelmark.text.terminal import Line, counted, labelled, say, visible
from leaderboard.record.durable import write_whole
from leaderboard.record.pooling import NO_RANK, RowState, too_wide
from leaderboard.text.presented import without_speedups
from leaderboard.text.units import interval

if TYPE_CHECKING:
    from harness.problem.schedule import Delay

COLUMNS = (
    "author", "id", "name", "team", "file", "handed_in", "late_days", "factor", "outcome", "tests_right", "tests",
    "time_ns", "low_ns", "high_ns", "baseline", "speedup", "points", "run", "message",
)  # fmt: skip


class Marked(NamedTuple):
    """What became of an author's submission; `delay` is None if it is not known when it was handed in.

    `id` and `name` are as the learning platform has them, empty if a teammate handed it in. `team` is empty if the
    author is in none. `feedback_file` is the name of the feedback file. `remarks` say what was unusual in how the
    kernel was handed in, and `marking` how it is marked, if a rule says so.
    """

    author: str
    id: str
    name: str
    team: str
    delay: Delay | None
    graded: GradingResult
    feedback_file: str
    remarks: tuple[str, ...] = ()
    marking: Marking | None = None

    @property
    def parts(self) -> list[Points]:
        """The points, part by part; none without a rule, or if they cannot be known: if it was not graded through no
        fault of its author, or the schedule gives no factor for when it was handed in.
        """
        verdict, factor = self.graded.verdict, self.delay.factor if self.delay else None
        if self.marking is None:
            return []
        if verdict is None:
            too_late = self.delay is not None and factor is None
            return self.marking.parts(None, 0.0) if self.graded.by_author or too_late else []
        if factor is None or verdict.outcome is Outcome.UNSUPPORTED:
            return []
        return self.marking.parts(verdict, factor)

    @property
    def points(self) -> str:
        """The points as a number; empty if there are none to tell."""
        return number(total(self.parts).points) if self.parts else ""

    @property
    def words(self) -> str:
        """The mark in one line, for its author: the same wherever a mark is shown."""
        verdict, delay = self.graded.verdict, self.delay
        (right, every, *_, baseline, speedup), _ = _numbers(self.graded)
        said = [f"{right} of {every} tests right"] if verdict else []
        said += [interval(verdict.score)] if verdict and verdict.score else []
        said += [f"{speedup} × {baseline}"] if baseline else []
        said += [str(delay)] if delay and delay.days else []
        said += [f"{total(self.parts)} points"] if self.parts else []
        why = self.message if verdict else _why(self)
        return visible(": ".join(filter(None, (", ".join((self.graded.outcome, *said)), why))))

    def line(self, *, of_team: bool) -> Line:
        """The mark in one line, for the organizer's terminal; one that decides a whole team's is called like it."""
        graded = self.graded
        who = f"{self.team} ({self.author})" if of_team else self.author
        mine = graded.verdict is None or graded.errored  # what an author is not told
        what = f"{graded.outcome}: {visible(graded.message)}" if mine else self.words
        what = f"{what} (not recorded)" if graded.lost else what
        run = f" (run {graded.verdict.run})" if graded.verdict and graded.recorded else ""
        return Line(f"{who}: {what}{run}", "bold red" if graded.errored else "", hang=2)

    @property
    def message(self) -> str:
        """What went wrong or was unusual, in one line; of an accepted kernel, why it has no rank."""
        return "; ".join(filter(None, (self.graded.message or _no_rank(self.graded), *self.remarks)))


def table(results: Iterable[Marked]) -> str:
    """CSV with a row for each author; times and the speedup over the first baseline are those of accepted kernels. The
    message says why such a one has no rank.

    `factor` is empty where nothing was graded, or the problem's late policy says nothing.
    """
    rows: list[Sequence[object]] = [COLUMNS]
    for one in results:
        numbers, run = _numbers(one.graded)
        whose = (one.author, one.id, one.name, one.team, one.graded.path)
        late = _late(one.delay, one.graded)
        rows.append((*whose, *late, one.graded.outcome, *numbers, one.points, run, one.message))
    return spreadsheet.table(rows)


def feedback(result: Marked) -> str:
    """What the author may see, and can act upon: of hidden tests it says the outcome alone, and it leaves out what
    only the person who grades can do.
    """
    graded = result.graded
    lines = [visible(graded.path)] if graded.path else []
    if graded.verdict is not None:
        lines += show.verdict(graded.verdict, graded.table, record=graded.recorded, for_author=True)
    else:
        lines.append(f"not graded: {_why(result)}")
    lines += [labelled("note", remark) for remark in result.remarks]
    if result.delay is not None and result.delay.days:
        lines.append(labelled("handed in", f"{shown(result.delay.handed_in)}, {result.delay}"))
    if parts := result.parts:
        lines.append(labelled("points", f"{total(parts)} ({', '.join(f'{part.what} {part}' for part in parts)})"))
    return "\n".join(lines) + "\n"


def _why(result: Marked) -> str:
    """Why a submission was not graded, as its author should know it."""
    if result.graded.by_author:
        return visible(result.graded.message)
    if result.delay is not None and result.delay.factor is None:
        return "it was handed in too late"
    return "not because of what you handed in; ask whoever grades it"


def _late(delay: Delay | None, graded: GradingResult) -> tuple[object, ...]:
    if delay is None:
        return ("",) * 3
    factor = "" if delay.factor is None or graded.verdict is None else f"{delay.factor:g}"
    return (delay.handed_in.isoformat(timespec="seconds"), delay.days, factor)


def _numbers(graded: GradingResult) -> tuple[tuple[object, ...], str]:
    """The tests, the time and the speedup; and the run."""
    verdict = graded.verdict
    if verdict is None:
        return ("",) * 7, ""
    right = sum(test.outcome is Outcome.ACCEPTED for test in verdict.tests)
    every = len(verdict.tests) + verdict.tests_not_run
    score, speedup = verdict.score, next(iter(without_speedups(verdict).speedups), None)
    times = (score.median_ns, score.low_ns, score.high_ns) if score else ("", "", "")
    over = (speedup.baseline, f"{speedup.ratio.median:.4g}") if speedup else ("", "")
    return (right, every, *times, *over), verdict.run if graded.recorded else ""


def _no_rank(graded: GradingResult) -> str:
    """Why an accepted kernel has no rank; empty if it has one, or its author ranks with a better one."""
    verdict = graded.verdict
    if verdict is None or verdict.score is None:
        return ""
    if graded.table is not None:
        standing = standings.standing(verdict, graded.table, for_author=True)
        return standing.removeprefix("none: ") if standing.startswith("none: ") else ""
    state: RowState = verdict.no_rank or ("too_wide" if too_wide(verdict.score) else "ranks")
    return NO_RANK.get(state, "")


@dataclass(frozen=True)
class Reports:
    """Where the reports are written; None: not at all. `feedback` is a folder with a file for each author."""

    summary: Path | None = None
    junit: Path | None = None
    marks: Path | None = None
    feedback: Path | None = None
    forms: PlatformForms = field(default_factory=PlatformForms)

    def keep(self, marked: Sequence[Marked], new: Sequence[Marked]) -> None:
        """Write all marks so far, and the feedback about those that are `new`, so that a command which is killed loses
        none. `write` reports what cannot be written.
        """
        with contextlib.suppress(UsageError):
            if self.marks is not None and new:
                write(self.marks, _csv(marked))
            for path, content in self._feedback_files(new):
                write(path, content)

    def write(self, every: Sequence[GradingResult], marked: Sequence[Marked], noun: str) -> None:
        """Write them all, and say on stderr how many of each outcome there are, and what was written.

        Raises:
            UsageError: one cannot be written; the others are.
        """
        written, failed = [], None
        files = ((self.marks, _csv(marked)), (self.summary, summary(every).encode()), (self.junit, junit(every)))
        for path, content in (*files, *self.forms.files(marked)):
            if path is not None:
                try:
                    write(path, content)
                    written += [str(path)] if path.name != RESULTS else []
                except UsageError as error:
                    failed = error
        try:
            for path, content in self._feedback_files(marked):
                write(path, content)
            written += [f"{counted(len(marked), 'file')} in {self.feedback}/"] if self.feedback else []
            gradescope, with_points = self.forms.gradescope, sum(bool(one.parts) for one in marked)
            written += [f"{counted(with_points, 'file')} in {gradescope}/"] if gradescope else []
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
                yield self.feedback / one.feedback_file, feedback(one).encode()


def _csv(marked: Sequence[Marked]) -> bytes:
    return spreadsheet.encoded(table(marked))


def write(path: Path, content: bytes) -> None:
    """Write a file whole, in place of an older one.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_whole(path.absolute(), content, replace=True)
    except OSError as error:
        raise UsageError(str(path), f"cannot be written ({error.strerror})") from error
