"""Points for what was handed in, by the rule of the course: `[marks]`. `marks` asks. Trusted; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import UsageError
from harness.verdict import Outcome
from kernelmark.project.problems import find_problem
from kernelmark.text.terminal import say, visible
from leaderboard.record.pooling import WIDEST, too_wide
from leaderboard.text.presented import without_speedups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.marks import MarksRule
    from harness.problem import Problem
    from harness.verdict import Verdict
    from kernelmark.project.settings import Settings


class Points(NamedTuple):
    """A part of a mark: what it is for, the points, and the most that there are."""

    what: str
    points: float
    most: float

    def __str__(self) -> str:
        return f"{number(self.points)} of {number(self.most)}"


class Marking(NamedTuple):
    """How the kernels of one problem are marked."""

    rule: MarksRule
    problem: Problem

    @classmethod
    def of(cls, settings: Settings, problem: Problem) -> Marking | None:
        """By the problem's own rule, or else by that of the project; None if neither has one."""
        rule = problem.marks or settings.marks
        return cls(rule, problem) if rule else None

    @classmethod
    def of_record(cls, settings: Settings, problem: str) -> Marking | None:
        """The same for a problem that may be gone, or be broken, since it was graded: then there are no points."""
        try:
            return cls.of(settings, find_problem(settings, problem, datetime.now(UTC)))
        except UsageError as error:
            say(f"kernelmark: note: there are no points, since the problem cannot be read: {visible(str(error))}")
            return None

    def parts(self, verdict: Verdict | None, factor: float) -> list[Points]:
        """What a kernel has, part by part; without a verdict nothing. `factor` is that of a late one.

        A time that is too wide to rank reaches no speedup, nor does a speedup as wide: they say nothing of the kernel.
        """
        share = self._share(verdict) if verdict else 0.0
        timed = verdict is not None and verdict.score is not None and not too_wide(verdict.score)
        ratios = without_speedups(verdict).speedups if verdict and timed else ()
        ratios = tuple(each for each in ratios[:1] if each.ratio.high <= WIDEST * each.ratio.low)
        reached = ratios[0].ratio.median if ratios and factor else 0.0
        found = [Points("tests", self.rule.tests * share * factor, self.rule.tests)]
        for each in self.rule.speedup:
            had = each.points if ratios and reached >= each.over else 0.0
            found.append(Points(f"speedup from {each.over:g} ×", had, each.points))
        return found

    def _share(self, verdict: Verdict) -> float:
        """The share of the tests that are right, each with its weight; of those that did not run none is."""
        device = verdict.environment.device_kind
        weights = {False: 1.0, True: self.rule.hidden}
        hidden = sum(case.hidden for case in self.problem.tests if device in case.devices)
        left = min(verdict.tests_not_run, max(0, hidden - sum(test.hidden for test in verdict.tests)))
        all_of_them = sum(weights[test.hidden] for test in verdict.tests)
        all_of_them += left * weights[True] + (verdict.tests_not_run - left) * weights[False]
        right = sum(weights[test.hidden] for test in verdict.tests if test.outcome is Outcome.ACCEPTED)
        return right / all_of_them if all_of_them else 0.0


def total(parts: Sequence[Points]) -> Points:
    """All parts together."""
    return Points("points", sum(part.points for part in parts), sum(part.most for part in parts))


def number(points: float) -> str:
    """Points as people write them, with at most two decimals."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
