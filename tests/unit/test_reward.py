"""What a grading earns, and that its objects survive being passed between processes."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelmark
from harness import errors
from harness.problem import load
from harness.verdict import CaseResult, Check, Doubt, DoubtCode, Outcome, Verdict
from kernelmark.grading.reward import ACCEPTED, FAILED, FASTEST, SLOWEST, RewardParts, reward, reward_parts
from tests.verdicts import REPLAYED, accepted, as_check, failed

ROOT = Path(__file__).resolve().parents[2]
OTHERWISE = [each for each in Outcome if each not in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.INCOMPLETE)]
SPEEDUPS = st.floats(min_value=1e-6, max_value=1e6)
ERRORS = [
    errors.UsageError("Fleet", "slots=0 is not a number of jobs", "use 1 or more"),
    errors.SubmissionError("kernel.py", "is not UTF-8 text"),
    errors.ProblemError("problems/x", "has no tests", "add one"),
    errors.SettingsError("device", "is unknown"),
    errors.HarnessError("it broke", "run `kernelmark doctor`"),
    errors.SandboxError("no sandbox"),
    errors.DeviceError("no device"),
    errors.LedgerError("is broken", "verify it"),
    errors.JobTimeoutError("the job has not ended within its timeout of 5 s"),
]


def timed(speedup: float | None = None, **changes: float) -> Verdict:
    """A verdict whose time counts, with these speedups; without a name it is over `eager`."""
    return accepted(modes=REPLAYED, speedups=({} if speedup is None else {"eager": speedup}) | changes)


def ended(outcome: Outcome, passed: int, wrong: int, not_run: int) -> Verdict:
    right = [CaseResult(name=f"right {i}", outcome=Outcome.ACCEPTED) for i in range(passed)]
    faulty = [CaseResult(name=f"wrong {i}", outcome=Outcome.WRONG_ANSWER, message="no") for i in range(wrong)]
    return failed(outcome).model_copy(update={"tests": (*right, *faulty), "tests_not_run": not_run})


@pytest.mark.parametrize(
    ("speedup", "earned"),
    [(1.0, 3), (2.0, 4), (0.5, 2), (8.0, 6), (SLOWEST, ACCEPTED), (SLOWEST / 9, ACCEPTED), (FASTEST, 7), (1e5, 7)],
)
def test_each_doubling_of_the_speedup_is_worth_one(speedup: float, earned: float) -> None:
    assert kernelmark.reward(timed(speedup)) == pytest.approx(earned)


@pytest.mark.parametrize(
    ("verdict", "earned"),
    [
        (ended(Outcome.WRONG_ANSWER, 3, 1, 0), 0.75 * FAILED),
        (ended(Outcome.WRONG_ANSWER, 3, 1, 8), 0.25 * FAILED),
        (ended(Outcome.RUNTIME_ERROR, 0, 1, 5), 0),
        (ended(Outcome.TIMEOUT, 6, 0, 0), FAILED),
        (ended(Outcome.UNSUPPORTED, 1, 0, 3), 0.25 * FAILED),
        (ended(Outcome.COMPILE_ERROR, 0, 0, 12), 0),
        (ended(Outcome.COMPILE_ERROR, 0, 0, 0), 0),
        (ended(Outcome.REJECTED, 12, 0, 0), 0),
    ],
)
def test_a_failed_answer_earns_by_its_tests_unless_it_cheated(verdict: Verdict, earned: float) -> None:
    assert reward(verdict) == pytest.approx(earned)


@pytest.mark.parametrize(
    ("graded", "earned"),
    [
        (accepted(speedups={"eager": 8.0}, ranked_timing="replayed"), ACCEPTED),  # it should have been replayed
        (accepted(speedups={"eager": 8.0}), 6),  # plain calls are what ranks
        (accepted(speedups={"eager": 8.0}, timing="sealed"), ACCEPTED),
        (accepted(speedups={"eager": 8.0}, timing="sealed", device_kind="cpu"), 6),
        (accepted(speedups={"eager": 8.0}, device_kind="cpu"), 6),
        (accepted(speedups={"eager": 8.0}, device_kind="cpu", interpreted=True), ACCEPTED),
        (timed(), ACCEPTED),
        (as_check(timed(8.0)), ACCEPTED),
        (as_check(ended(Outcome.WRONG_ANSWER, 1, 1, 2)), 0.25 * FAILED),
    ],
)
def test_a_time_counts_if_it_is_the_kernels_and_out_of_the_answers_reach(graded: Check, earned: float) -> None:
    assert reward(graded) == pytest.approx(earned)


def test_the_baseline_is_the_first_or_the_one_that_is_named() -> None:
    both = timed(compiled=2.0, eager=8.0)
    assert [reward(both), reward(both, "compiled"), reward(both, baseline="eager")] == pytest.approx([4, 4, 6])
    assert reward(both, "absent") == ACCEPTED, "an earlier version did not say what was asked for"


def asked(verdict: Verdict, *names: str, **changes: object) -> Verdict:
    return verdict.model_copy(update={"requested_baselines": names, **changes})


@pytest.mark.parametrize(
    ("verdict", "those"),
    [
        (asked(timed(2.0), "eager"), "only eager"),
        (asked(timed(2.0), "eager", "compiled"), "only eager, compiled"),
        (asked(timed()), "and no other"),
        (asked(failed(), "eager"), "only eager"),
    ],
)
def test_a_baseline_that_was_not_asked_for_is_refused(verdict: Verdict, those: str) -> None:
    with pytest.raises(errors.UsageError, match=f"'eagr' was not asked for, {those}"):
        reward(verdict, "eagr")
    assert reward(Verdict.from_json(verdict.to_json())) == reward(verdict), "without a name the first one counts"


def test_no_other_baseline_counts_in_place_of_one_that_failed() -> None:
    doubt = Doubt(code="no_baseline", text="baseline eager: it crashed")
    half = asked(timed(compiled=8.0), "eager", "compiled", doubts=(doubt,))
    for named in ((), ("eager",)):
        with pytest.warns(UserWarning, match="baseline eager: it crashed; a right answer earns 1, however fast"):
            assert reward(half, *named) == ACCEPTED
    assert reward(half, "compiled") == pytest.approx(6)


@given(slow=SPEEDUPS, fast=SPEEDUPS)
def test_faster_never_earns_less_and_stays_within_bounds(slow: float, fast: float) -> None:
    slow, fast = sorted((slow, fast))
    low, high = reward(timed(slow)), reward(timed(fast))
    assert ACCEPTED <= low <= high <= 7


@given(slow=st.floats(SLOWEST, FASTEST / 2), factor=st.floats(1.001, 2))
def test_between_the_bounds_faster_earns_more(slow: float, factor: float) -> None:
    assert reward(timed(slow)) < reward(timed(slow * factor))


def test_a_wide_interval_costs_nothing() -> None:
    (speedup,) = timed(2.0).speedups
    wide = speedup.model_copy(update={"ratio": speedup.ratio.model_copy(update={"low": 0.3, "high": 9.0})})
    assert reward(timed(2.0).model_copy(update={"speedups": (wide,)})) == reward(timed(2.0))


@pytest.mark.parametrize(("widest", "earned"), [(None, 4), (1.2, 4), (1.11, 4), (1.1, ACCEPTED), (1, ACCEPTED)])
def test_on_request_a_wide_interval_earns_no_speedup(widest: float | None, earned: float) -> None:
    (speedup,) = timed(2.0).speedups
    wide = speedup.model_copy(update={"ratio": speedup.ratio.model_copy(update={"low": 1.9, "high": 1.9 * 1.105})})
    graded = timed(2.0).model_copy(update={"speedups": (wide,)})
    assert reward(graded, widest=widest) == pytest.approx(earned)
    parts = reward_parts(graded, widest=widest)
    assert (parts.value, parts.speedup) == (reward(graded, widest=widest), 2.0 if earned == 4 else None)
    assert ("the interval of 2 [1.9, 2.1] × eager is wider than" in parts.reason) == (earned == ACCEPTED)


def test_widest_is_a_ratio_of_two_bounds() -> None:
    with pytest.raises(errors.UsageError, match=r"widest=0\.9 is not a ratio"):
        reward(timed(2.0), widest=0.9)


@pytest.mark.parametrize(
    ("graded", "parts"),
    [
        (asked(timed(32.0), "eager"), (7, 1, 32.0, "accepted, 32 [31.8, 32.2] × eager")),
        (timed(0.01), (1, 1, 0.01, "accepted, 0.01 [0.00995, 0.01] × eager")),
        (timed(), (1, 1, None, "accepted, without a time that counts: no baseline")),
        (as_check(timed(8.0)), (1, 1, None, "accepted, without a time that counts: only checked")),
        (
            accepted(speedups={"eager": 8.0}, ranked_timing="replayed"),
            (1, 1, None, "accepted, without a time that counts: its calls were not replayed"),
        ),
        (
            accepted(speedups={"eager": 8.0}).model_copy(
                update={"doubts": (Doubt(code=DoubtCode.KNOWN_INPUTS, text="both seeds gave the same"),)}
            ),
            (1, 1, None, "accepted, without a time that counts: the problem's inputs can be known"),
        ),
        (
            accepted(speedups={"eager": 8.0}, device_kind="cpu", interpreted=True),
            (1, 1, None, "accepted, without a time that counts: in Triton's interpreter"),
        ),
        (ended(Outcome.WRONG_ANSWER, 3, 1, 8), (0.125, 0.25, None, "wrong_answer: {message} (3 of 12 tests right)")),
        (ended(Outcome.REJECTED, 12, 0, 0), (0, 1, None, "rejected: {message} (12 of 12 tests right)")),
        (ended(Outcome.COMPILE_ERROR, 0, 0, 0), (0, 0, None, "compile_error: {message} (0 of 0 tests right)")),
    ],
)
def test_the_parts_say_what_a_reward_is_made_of(graded: Check, parts: tuple[float, float, float | None, str]) -> None:
    value, right, speedup, reason = parts
    assert reward_parts(graded) == RewardParts(value, right, speedup, reason.format(message=graded.message))
    assert reward(graded) == value


@given(outcome=st.sampled_from(OTHERWISE), passed=st.integers(0, 50), more=st.integers(0, 50), wrong=st.integers(1, 50))
def test_more_passed_tests_never_earn_less(outcome: Outcome, passed: int, more: int, wrong: int) -> None:
    fewer = reward(ended(outcome, passed, wrong, more))
    assert reward(ended(Outcome.REJECTED, passed, wrong, more)) == 0 <= fewer
    assert fewer == reward(ended(outcome, passed, wrong + more, 0)), "not run is not passed"
    assert fewer <= reward(ended(outcome, passed + more, wrong, 0)) < reward(timed(1e-6))
    assert more == 0 or fewer < reward(ended(outcome, passed + more, wrong, 0))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_keeps_its_class_its_line_and_its_parts(error: errors.KernelmarkError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - of our own making
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_every_error_is_tried() -> None:
    families = (errors.UsageError, errors.HarnessError)
    known = {var for var in vars(errors).values() if isinstance(var, type) and issubclass(var, families)}
    assert {type(error) for error in ERRORS} == known


@pytest.mark.parametrize(
    "graded", [timed(2.0), accepted(device_kind="cpu"), failed(), failed(Outcome.COMPILE_ERROR), as_check(timed(2.0))]
)
def test_a_verdict_and_a_result_pass_between_processes(graded: Check) -> None:
    job = kernelmark.Job(problem=load(ROOT / "problems/square"), submission="x = 1", key=("step", 3))
    verdict, checked = (graded, None) if isinstance(graded, Verdict) else (None, graded)
    error = errors.SubmissionError("source", "is too long", "shorten it")
    result = kernelmark.JobResult(job=job, verdict=verdict, check=checked, error=error, seconds=2.5, device="cpu")
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - of our own making
    assert (again.job, again.verdict, again.check, again.seconds) == (job, verdict, checked, 2.5)
    assert (type(again.error), str(again.error)) == (type(error), str(error))
    assert reward(again.verdict or again.check) == reward(graded)
