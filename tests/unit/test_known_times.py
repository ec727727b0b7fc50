"""Speedups over times that a baseline had in an earlier grading."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.judge.timing.overall import KnownTimes, failed_baselines, known_speedups, score
from harness.verdict import Speedup, Verdict
from tests.verdicts import REPLAYED, accepted, failed

MODES = ("graphs", "graphs")


def over(own: Verdict, *baselines: Verdict) -> list[Speedup]:
    return list(known_speedups(own, [KnownTimes.of(each) for each in baselines]))


def test_a_speedup_is_as_wide_as_both_intervals_allow() -> None:
    own = accepted(score_ns=1000, low_ns=900, high_ns=1100, modes=("graphs",))
    baseline = accepted(name="eager.py", score_ns=2000, low_ns=1900, high_ns=2200, modes=("graphs",))
    [speedup] = over(own, baseline)
    ratio = speedup.ratio
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((2.0, 1900 / 1100, 2200 / 900))
    assert ratio.confidence == pytest.approx(0.95 * 0.95), "both hold at once in so many cases"
    assert (speedup.baseline, speedup.sha256, speedup.known) == ("eager", baseline.submission.sha256, True)


def test_over_several_cases_it_is_their_geometric_mean_by_their_weights() -> None:
    own, baseline = accepted(score_ns=1000, modes=MODES), accepted(name="eager.py", score_ns=3000, modes=MODES)
    slow = baseline.benchmarks[1].model_copy(update={"score": accepted(score_ns=24_000).score})
    uneven = baseline.model_copy(update={"benchmarks": (baseline.benchmarks[0], slow)})
    [speedup] = over(own, uneven)
    assert speedup.ratio.median == pytest.approx(72**0.5)
    assert 8.4 < speedup.ratio.low < 72**0.5 < speedup.ratio.high < 8.6
    heavy = [own.benchmarks[0].model_copy(update={"weight": 2.0}), *own.benchmarks[1:]]
    [speedup] = over(own.model_copy(update={"benchmarks": tuple(heavy)}), uneven)
    assert speedup.ratio.median == pytest.approx((3 * 3 * 24) ** (1 / 3))
    assert score(heavy).median_ns == 1000
    slower = [heavy[0].model_copy(update={"score": accepted(score_ns=8000).score}), *heavy[1:]]
    assert score(slower).median_ns == 4000, "(8000² · 1000)^⅓"


def test_a_screens_one_case_is_compared_with_that_case_of_the_baseline() -> None:
    baseline = accepted(name="eager.py", score_ns=3000, modes=("graphs",) * 3)
    own = accepted(score_ns=1000, modes=("graphs",) * 3)
    screened = own.model_copy(update={"benchmarks": own.benchmarks[2:]})
    [speedup] = over(screened, baseline)
    assert speedup.ratio.median == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("own", "baseline"),
    [
        (accepted(modes=MODES), accepted(modes=MODES[:1])),
        (accepted(modes=REPLAYED[:2]), accepted(modes=MODES)),
        (accepted(modes=MODES), accepted(modes=REPLAYED[:2])),
        (failed(), accepted(modes=MODES)),
    ],
    ids=["a case is unknown", "the baseline was timed in another way", "or the submission was", "not accepted"],
)
def test_what_cannot_be_compared_has_no_speedup(own: Verdict, baseline: Verdict) -> None:
    assert over(own, baseline) == []
    other = accepted(name="other.py", modes=REPLAYED if own.timing == "replayed" else MODES)
    assert len(over(own, baseline, other)) == (own.score is not None), "and takes no other's"


def test_times_below_the_clocks_resolution_divide_nothing_by_zero() -> None:
    tiny = accepted(score_ns=1, low_ns=0, high_ns=1, modes=("graphs",))
    [speedup] = over(tiny, accepted(name="eager.py", score_ns=1, low_ns=0, high_ns=2, modes=("graphs",)))
    assert (speedup.ratio.low, speedup.ratio.median, speedup.ratio.high) == (1.0, 1.0, 2.0)


def test_a_baseline_without_a_speedup_is_a_doubt_whether_or_not_it_failed() -> None:
    """Its calls may have been too short to divide by, in one case of several: nothing failed then."""
    timed = accepted(modes=MODES, speedups={"eager": 2.0, "half": 2.0}).benchmarks
    [first, second] = timed
    second = second.model_copy(update={"baselines": tuple(p for p in second.baselines if p.name == "eager")})
    names = {"eager": None, "half": None, "gone": "it crashed"}
    baselines = [
        SimpleNamespace(name=name, fault=fault, submission=SimpleNamespace(sha256="a" * 64))
        for name, fault in names.items()
    ]
    timing: Any = SimpleNamespace(baselines=baselines, timed=[first, second])
    told = [doubt.text for doubt in failed_baselines(timing, accepted=True)]
    assert told == ["baseline half: its calls were too short, or too few, for a ratio", "baseline gone: it crashed"]
    assert [doubt.text for doubt in failed_baselines(timing, accepted=False)] == ["baseline gone: it crashed"]
