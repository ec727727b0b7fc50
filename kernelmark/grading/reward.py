"""What a grading is worth to someone who trains a model on it: `kernelmark.reward`. Pure; imports no torch.

The same verdict always has the same reward over the same baseline. Nothing else is looked at, since everything else
that a trainer knows (how long a grading took, on which machine) says nothing about the answer.
"""

from __future__ import annotations

import math
import warnings
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


def reward(graded: Check, baseline: str | None = None, *, project: Project | None = None) -> float:
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
    and what was only checked. A baseline that was asked for and gave no number causes a `UserWarning`, since
    otherwise every right answer would earn the same without a word.

    The median of the speedup counts, not the lower end of its interval (`ratio.low`): the median is off in both
    directions alike, which averages out over many answers, while the lower end is lower where the machine was
    disturbed, which is not the answer's doing. To choose the best of many answers, rather than to train, compare
    `ratio.low`: the greatest of many medians is a lucky one.

    Args:
        graded: a `Verdict`, or a `Check`, which has no times.
        baseline: the name of the baseline whose speedup counts; None: the first that was asked for.
        project: the baseline is the first that its settings name, if they name one and `baseline` does not.

    Raises:
        UsageError: the verdict says which baselines were asked for, and this one was not.
    """
    if baseline is None and project is not None:
        baseline = next((name for name in project.settings.baselines if name != "auto"), None)
    asked = graded.requested_baselines if isinstance(graded, Verdict) else None
    if asked is not None and baseline is not None and baseline not in asked:
        those = f"only {', '.join(asked)}" if asked else "and no other either"
        raise UsageError("reward", f"the baseline {baseline!r} was not asked for, {those}", "name it when you grade")
    if graded.outcome is Outcome.REJECTED:
        return 0.0
    if graded.outcome is not Outcome.ACCEPTED:
        passed = sum(test.outcome is Outcome.ACCEPTED for test in graded.tests)
        return FAILED * passed / max(len(graded.tests) + graded.tests_not_run, 1)
    speedup = _speedup(graded, baseline) if isinstance(graded, Verdict) and _timed(graded) else SLOWEST
    return ACCEPTED + math.log2(min(max(speedup, SLOWEST), FASTEST) / SLOWEST)


def _timed(verdict: Verdict) -> bool:
    """Whether its times are those of the kernel, by a clock that the answer could not reach."""
    ran = verdict.environment
    timed_by_the_answer = verdict.timing == "sealed" and ran.device_kind == "cuda"
    return verdict.ranks and not timed_by_the_answer and not ran.interpreted


def _speedup(verdict: Verdict, baseline: str | None) -> float:
    asked = verdict.requested_baselines
    name = baseline if baseline is not None or not asked else asked[0]
    found = next((speedup.ratio.median for speedup in verdict.speedups if name in (None, speedup.baseline)), None)
    if found is None and asked:
        mine = (doubt.text for doubt in verdict.doubts if doubt.code == DoubtCode.NO_BASELINE)
        why = next((text for text in mine if text.startswith(f"baseline {name}:")), f"baseline {name}: no speedup")
        warnings.warn(f"{why}; a right answer earns {ACCEPTED:g}, however fast it is", stacklevel=3)
    return SLOWEST if found is None else found
