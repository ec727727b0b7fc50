"""The mark of an author: the result of a submission, its points, and how both are shown in one line. Trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.verdict import Outcome
from kernelmark.course.points import Marking, Points, number, total
from kernelmark.course.report import GradingResult
from kernelmark.text import standings
from kernelmark.text.terminal import Line, visible
from leaderboard.record.pooling import NO_RANK, RowState, too_wide
from leaderboard.text.presented import without_speedups
from leaderboard.text.units import interval

if TYPE_CHECKING:
    from harness.problem.schedule import Delay


class Mark(NamedTuple):
    """An author's submission with its result and points. `delay` is None if the time of the submission is unknown.

    `id` and `name` are those on the learning platform, and empty if a teammate submitted it. `team` is empty if the
    author is in none. `remarks` say what was unusual in how the kernel was submitted. `marking` is the rule for points;
    None: there are no points.
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
        """The points, part by part. The list is empty if there is no rule, or if the points cannot be decided: it was
        not graded for a reason that is not the author's fault, or it was too late to be accepted.
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
        """The points in digits; empty if `parts` is."""
        return number(total(self.parts).points) if self.parts else ""

    @property
    def words(self) -> str:
        """The mark in one line, as every author sees it."""
        verdict, delay = self.graded.verdict, self.delay
        (right, count, *_, baseline, speedup), _ = numbers_of(self.graded)
        facts = [f"{right} of {count} tests right"] if verdict else []
        facts += [interval(verdict.score)] if verdict and verdict.score else []
        facts += [f"{speedup} × {baseline}"] if baseline else []
        facts += [str(delay)] if delay and delay.days else []
        facts += [f"{total(self.parts)} points"] if self.parts else []
        why = self.message if verdict else why_ungraded(self)
        return visible(": ".join(filter(None, (", ".join((self.graded.outcome, *facts)), why))))

    def line(self, *, of_team: bool) -> Line:
        """The mark in one line, for the organizer's terminal; with `of_team` it begins with the team's name."""
        graded = self.graded
        who = f"{self.team} ({self.author})" if of_team else self.author
        failed = graded.verdict is None or graded.errored  # the reason is for the organizer, not for the author
        what = f"{graded.outcome}: {visible(graded.message)}" if failed else self.words
        what = f"{what} (not recorded)" if graded.lost else what
        run = f" (run {graded.verdict.run})" if graded.verdict and graded.recorded else ""
        return Line(f"{who}: {what}{run}", "bold red" if graded.errored else "", hang=2)

    @property
    def message(self) -> str:
        """What failed or was unusual, in one line; for an accepted kernel, why it has no rank."""
        return "; ".join(filter(None, (self.graded.message or _no_rank(self.graded), *self.remarks)))


def why_ungraded(mark: Mark) -> str:
    """Why a submission was not graded, in words for its author."""
    if mark.graded.by_author:
        return visible(mark.graded.message)
    if mark.delay is not None and mark.delay.factor is None:
        return "it was handed in too late"
    return "not because of what you handed in; ask the person who grades it"


def numbers_of(graded: GradingResult) -> tuple[tuple[object, ...], str]:
    """The columns of `marks.COLUMNS` from `tests_right` to `speedup`, and the run; missing values are empty."""
    verdict = graded.verdict
    if verdict is None:
        return ("",) * 7, ""
    right = sum(test.outcome is Outcome.ACCEPTED for test in verdict.tests)
    count = len(verdict.tests) + verdict.tests_not_run
    score, speedup = verdict.score, next(iter(without_speedups(verdict).speedups), None)
    times = (score.median_ns, score.low_ns, score.high_ns) if score else ("", "", "")
    over = (speedup.baseline, f"{speedup.ratio.median:.4g}") if speedup else ("", "")
    return (right, count, *times, *over), verdict.run if graded.recorded else ""


def _no_rank(graded: GradingResult) -> str:
    """Why an accepted kernel has no rank; empty if it has one, or its author ranks with a better kernel."""
    verdict = graded.verdict
    if verdict is None or verdict.score is None:
        return ""
    if graded.table is not None:
        standing = standings.standing(verdict, graded.table, for_author=True)
        return standing.removeprefix("none: ") if standing.startswith("none: ") else ""
    state: RowState = verdict.no_rank or ("too_wide" if too_wide(verdict.score) else "ranks")
    return NO_RANK.get(state, "")
