"""Computes the points of a submission by the rule `[marks]` of the course; `mark` calls it. Trusted."""

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
    """A part of a mark: what it is for, the points, and the maximum."""

    what: str
    points: float
    most: float

    def __str__(self) -> str:
        return f"{number(self.points)} of {number(self.most)}"


class Marking(NamedTuple):
    """The rule by which the kernels of a problem get points."""

    rule: MarksRule
    problem: Problem

    @classmethod
    def of(cls, settings: Settings, problem: Problem) -> Marking | None:
        """The problem's rule, or else that of the project; None if neither has one."""
        rule = problem.marks or settings.marks
        return cls(rule, problem) if rule else None

    @classmethod
    def of_record(cls, settings: Settings, problem: str) -> Marking | None:
        """As `of`, for a recorded problem. None, with a note on stderr, if the problem cannot be read any more."""
        try:
            return cls.of(settings, find_problem(settings, problem, datetime.now(UTC)))
        except UsageError as error:
            say(f"kernelmark: note: there are no points, since the problem cannot be read: {visible(str(error))}")
            return None

    def parts(self, verdict: Verdict | None, factor: float) -> list[Points]:
        """The points of a kernel, part by part; all 0 without a verdict. `factor`, 0 to 1, is that of the late policy.

        A speedup gets no points if the interval of the time or of the speedup is too wide for a rank, as it then says
        little about the kernel, or if the factor is 0.
        """
        share = self._share(verdict) if verdict else 0.0
        timed = verdict is not None and verdict.score is not None and not too_wide(verdict.score)
        ratios = without_speedups(verdict).speedups if verdict and timed and factor else ()
        ratios = tuple(over for over in ratios[:1] if over.ratio.high <= WIDEST * over.ratio.low)
        reached = ratios[0].ratio.median if ratios else 0.0
        found = [Points("tests", self.rule.tests * share * factor, self.rule.tests)]
        for step in self.rule.speedup:
            points = step.points if ratios and reached >= step.over else 0.0
            found.append(Points(f"speedup from {step.over:g} ×", points, step.points))
        return found

    def _share(self, verdict: Verdict) -> float:
        """The weighted share of the tests that are right. Tests that did not run count as wrong."""
        device = verdict.environment.device_kind
        weights = {False: 1.0, True: self.rule.hidden}
        hidden = sum(case.hidden for case in self.problem.tests if device in case.devices)
        hidden_left = min(verdict.tests_not_run, max(0, hidden - sum(test.hidden for test in verdict.tests)))
        most = sum(weights[test.hidden] for test in verdict.tests)
        most += hidden_left * weights[True] + (verdict.tests_not_run - hidden_left) * weights[False]
        right = sum(weights[test.hidden] for test in verdict.tests if test.outcome is Outcome.ACCEPTED)
        return right / most if most else 0.0


def total(parts: Sequence[Points]) -> Points:
    """The sum of all parts."""
    return Points("points", sum(part.points for part in parts), sum(part.most for part in parts))


def number(points: float) -> str:
    """Points with at most two decimals and without trailing zeros."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
