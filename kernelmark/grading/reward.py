"""Rewards for training a model on gradings: `reward`, and `reward_parts`. Pure; imports no torch.

The same verdict always has the same reward over the same baseline. Nothing but the verdict counts: how long a grading
took, or on which machine, says nothing about the answer.
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
"""What passing all tests is worth if something else fails, such as a limit while it is timed."""
ACCEPTED = 1.0
"""The least that an accepted answer earns."""
SLOWEST, FASTEST = 0.25, 16.0
"""Speedups beyond these count as these. The upper one also limits what an answer can gain by a hole in the harness."""


@dataclass(frozen=True)
class RewardParts:
    """A reward, what it is made of, and why."""

    value: float
    """From 0 to 7."""
    right: float
    """The share of the tests that passed; one that was not run did not pass."""
    speedup: float | None
    """The median of the speedup over the baseline, not limited; None without a time that counts."""
    reason: str
    """A sentence for logs, on one line."""


def reward(
    graded: Check, baseline: str | None = None, *, project: Project | None = None, widest: float | None = None
) -> float:
    """The reward of one answer, from 0 to 7.

    | the answer | earns |
    |---|---|
    | is `rejected`: it cheated | 0 |
    | is not accepted otherwise | `FAILED` × the share of tests that passed; a test that was not run did not pass |
    | is accepted, and timed | `ACCEPTED` + log2(speedup / `SLOWEST`), the speedup limited to `SLOWEST` .. `FASTEST` |
    | is accepted, without a time that counts | `ACCEPTED` |

    So an answer that does not compile earns 0, one that fails at most 0.5, and one that is right at least 1: 1 if it
    takes four times as long as the baseline or longer, 3 if it is as fast, one more for each doubling, and 7 at most.

    These have no time that counts, and so earn the least that an accepted answer can: a verdict whose calls should have
    been replayed and were not, since its time includes work on the host, and an answer can prevent replays; one on a
    GPU from before protocol 5 whose calls were not replayed, since the answer's own process said their times; Triton in
    its interpreter; a verdict without a speedup over that baseline, since an answer might have made the baseline fail;
    what was only checked; and, with `widest`, a speedup whose interval is wider. A baseline that was asked for and gave
    no number causes a `UserWarning`, since otherwise every right answer would earn the same without a word.

    The median of the speedup counts, not the lower end of its interval (`ratio.low`): the median is off in both
    directions alike, which averages out over many answers, while the lower end is lower where the machine was
    disturbed, which is not the answer's doing. To choose the best of many answers, rather than to train, compare
    `ratio.low`: the greatest of many medians is a lucky one.

    Args:
        graded: a `Verdict`, or a `Check`, which has no times.
        baseline: the name of the baseline whose speedup counts; None: the first that was asked for.
        project: the baseline is the first that its settings name, if they name one and `baseline` does not.
        widest: the most that the upper bound of the speedup's interval may be of the lower one, such as 1.1, for the
            speedup to count; None: it always does. An answer on a disturbed machine then earns that it is right alone.

    Raises:
        UsageError: the verdict says which baselines were asked for, and this one was not; `widest` is less than 1.
    """
    return _parts(graded, baseline, project, widest).value


def reward_parts(
    graded: Check, baseline: str | None = None, *, project: Project | None = None, widest: float | None = None
) -> RewardParts:
    """The reward of one answer with what it is made of, for logs, or for a reward of your own; arguments, warnings and
    exceptions as for `reward`.
    """
    return _parts(graded, baseline, project, widest)


def _parts(graded: Check, baseline: str | None, project: Project | None, widest: float | None) -> RewardParts:
    if widest is not None and not widest >= 1:
        raise UsageError("reward", f"widest={widest} is not a ratio of two bounds", "give 1 or more, such as 1.1")
    if baseline is None and project is not None:
        baseline = next((name for name in project.settings.baselines if name != "auto"), None)
    asked = graded.requested_baselines if isinstance(graded, Verdict) else None
    if asked is not None and baseline is not None and baseline not in asked:
        those = f"only {', '.join(asked)}" if asked else "and no other either"
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
    """Why it has no time of the kernel by a clock that the answer could not reach; empty if it has one."""
    if not isinstance(graded, Verdict):
        return "only checked"
    ran = graded.environment
    if ran.interpreted:
        return "in Triton's interpreter"
    timed_by_the_answer = graded.timing == "sealed" and ran.device_kind == "cuda"
    return "" if graded.ranks and not timed_by_the_answer else "its calls were not replayed"


def _speedup(graded: Check, baseline: str | None, widest: float | None) -> tuple[float | None, str]:
    """The speedup that counts, or None, and the reason in words."""
    why = _untimed(graded)
    if why or not isinstance(graded, Verdict):
        return None, f"without a time that counts: {why}"
    asked = graded.requested_baselines
    name = baseline if baseline is not None or not asked else asked[0]
    found = next((speedup for speedup in graded.speedups if name in (None, speedup.baseline)), None)
    if found is None:
        texts = (doubt.text for doubt in graded.doubts if doubt.code == DoubtCode.NO_BASELINE)
        why = next((text for text in texts if text.startswith(f"baseline {name}:")), f"baseline {name}: no speedup")
        if asked:
            warnings.warn(f"{why}; a right answer earns {ACCEPTED:g}, however fast it is", stacklevel=4)
        return None, f"without a time that counts: {why if name else 'no baseline'}"
    ratio = found.ratio
    shown = f"{ratio.median:.3g} [{ratio.low:.3g}, {ratio.high:.3g}] × {found.baseline}"
    if widest is not None and ratio.high > widest * ratio.low:
        return None, f"without a time that counts: the interval of {shown} is wider than {widest:g}"
    return ratio.median, shown
