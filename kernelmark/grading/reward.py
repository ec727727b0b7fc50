"""Rewards for training a model on gradings: `reward`, and `reward_parts`. Pure; imports no torch.

The same verdict always has the same reward over the same baseline. Only the verdict counts, not how long the grading
took or on which machine it ran.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.verdict import Check, DoubtCode, Outcome, Verdict

if TYPE_CHECKING:
    from kernelmark.project.project import Project

FAILED = 0.5
"""The reward for passing all tests if something else fails, such as a time limit during the benchmarks."""
ACCEPTED = 1.0
"""The smallest reward of an accepted answer."""
SLOWEST, FASTEST = 0.25, 16.0
"""Speedups are limited to this range. The upper limit also bounds what an answer can gain by a hole in the harness."""


@dataclass(frozen=True)
class RewardParts:
    """A reward, its components, and the reason for it."""

    value: float
    """From 0 to 7."""
    right: float
    """The share of the tests that passed; a test that was not run did not pass."""
    speedup: float | None
    """The median speedup over the baseline, not limited; None without a time that counts."""
    reason: str
    """One line for logs."""


def reward(
    graded: Check, baseline: str | None = None, *, project: Project | None = None, widest: float | None = None
) -> float:
    """The reward of one answer, from 0 to 7.

    | the answer | earns |
    |---|---|
    | is `rejected`: it cheated | 0 |
    | fails otherwise | `FAILED` × the share of tests that passed; a test that was not run did not pass |
    | is accepted, and timed | `ACCEPTED` + log2(speedup / `SLOWEST`), the speedup limited to `SLOWEST` .. `FASTEST` |
    | is accepted, without a time that counts | `ACCEPTED` |

    An answer that does not compile earns 0, one that fails at most 0.5, and one that is right at least 1: 1 if it takes
    at least four times as long as the baseline, 3 if it is as fast, one more for each doubling, and at most 7.

    An accepted answer earns only `ACCEPTED` if it has no time that counts:

    - its calls should have been replayed and were not: the time includes work on the host, and an answer can prevent
      replays;
    - it ran on a GPU before protocol 5 without replays: its own process reported the times;
    - Triton's interpreter ran it;
    - there is no speedup over the baseline: the answer might have made the baseline fail;
    - it was only checked;
    - with `widest`, the interval of the speedup is wider.

    A requested baseline without a speedup causes a `UserWarning`: otherwise all right answers would silently earn the
    same.

    The median of the speedup counts, and not the lower end of its interval (`ratio.low`). Errors of the median average
    out over many answers, while the lower end is smaller where the machine was disturbed, for which the answer is not
    responsible. To choose the best of many answers, compare `ratio.low`: the greatest of many medians is partly luck.

    Args:
        graded: a `Verdict`, or a `Check`, which has no times.
        baseline: the name of the baseline; None: the first requested one.
        project: if `baseline` is None and these settings name baselines, the first of them is used.
        widest: the largest ratio of the upper to the lower bound of the speedup's interval, such as 1.1, with which the
            speedup counts; None: it always counts.

    Raises:
        UsageError: the verdict says that this baseline was not requested, or `widest` is less than 1.
    """
    return _parts(graded, baseline, project, widest).value


def reward_parts(
    graded: Check, baseline: str | None = None, *, project: Project | None = None, widest: float | None = None
) -> RewardParts:
    """The reward of one answer with its components, for logs or for a reward of your own; arguments, warnings and
    exceptions as for `reward`.
    """
    return _parts(graded, baseline, project, widest)


def _parts(graded: Check, baseline: str | None, project: Project | None, widest: float | None) -> RewardParts:
    if widest is not None and not widest >= 1:
        raise UsageError("reward", f"widest={widest} is not a ratio of two bounds", "give 1 or more, such as 1.1")
    if baseline is None and project is not None:
        baseline = next((name for name in project.settings.baselines if name != "auto"), None)
    requested = graded.requested_baselines if isinstance(graded, Verdict) else None
    if requested is not None and baseline is not None and baseline not in requested:
        those = f"only {', '.join(requested)}" if requested else "and no other either"
        raise UsageError("reward", f"the baseline {baseline!r} was not asked for, {those}", "name it when you grade")
    count = len(graded.tests) + graded.tests_not_run
    passed = sum(test.outcome is Outcome.ACCEPTED for test in graded.tests)
    right, tests = passed / max(count, 1), f"{passed} of {count} tests right"
    if graded.outcome is not Outcome.ACCEPTED:
        failure = f"{graded.outcome.value}: {graded.message}"
        cheated = graded.outcome is Outcome.REJECTED
        return RewardParts(0.0 if cheated else FAILED * right, right, None, f"{failure} ({tests})")
    speedup, reason = _speedup(graded, baseline, widest)
    counts = min(max(speedup or SLOWEST, SLOWEST), FASTEST)
    return RewardParts(ACCEPTED + math.log2(counts / SLOWEST), right, speedup, f"accepted, {reason}")


def _untimed(graded: Check) -> str:
    """Why it has no time from a clock beyond the answer's reach; empty if it has one."""
    if not isinstance(graded, Verdict):
        return "only checked"
    ran = graded.environment
    if ran.interpreted:
        return "in Triton's interpreter"
    if graded.no_rank == "known_inputs":
        return "the problem's inputs can be known"
    timed_by_the_answer = graded.timing == "sealed" and ran.device_kind == "cuda"
    return "" if graded.ranks and not timed_by_the_answer else "its calls were not replayed"


def _speedup(graded: Check, baseline: str | None, widest: float | None) -> tuple[float | None, str]:
    """The speedup that counts, or None, and the reason in words."""
    why = _untimed(graded)
    if why or not isinstance(graded, Verdict):
        return None, f"without a time that counts: {why}"
    requested = graded.requested_baselines
    name = baseline if baseline is not None or not requested else requested[0]
    found = next((speedup for speedup in graded.speedups if name in (None, speedup.baseline)), None)
    if found is None:
        texts = (doubt.text for doubt in graded.doubts if doubt.code == DoubtCode.NO_BASELINE)
        why = next((text for text in texts if text.startswith(f"baseline {name}:")), f"baseline {name}: no speedup")
        if requested:
            warnings.warn(f"{why}; a right answer earns {ACCEPTED:g}, however fast it is", stacklevel=4)
        return None, f"without a time that counts: {why if name else 'no baseline'}"
    ratio = found.ratio
    shown = f"{ratio.median:.3g} [{ratio.low:.3g}, {ratio.high:.3g}] × {found.baseline}"
    if widest is not None and ratio.high > widest * ratio.low:
        return None, f"without a time that counts: the interval of {shown} is wider than {widest:g}"
    return ratio.median, shown
