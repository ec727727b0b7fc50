"""What counts as a failed attack, where a launcher makes the calls and where it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.verdict import Verdict
from kernelmark.diagnostics import selftest
from kernelmark.diagnostics.selftest import KnownSubmission, SelfTest, TrialGrading
from kernelmark.grading.fleet.one_by_one import OneByOne
from kernelmark.project.settings import Settings
from tests.verdicts import REPLAYED, accepted

PATCHED = KnownSubmission(
    folder=Path("patched"),
    surface="clock",
    devices=("cuda",),
    outcomes=("rejected",),
    proof="attack: claims nothing",
    twin="torch_mul",
    host_only=True,
)


def failure_of(case: KnownSubmission, graded: Callable[..., TrialGrading]) -> str | None:
    """Attempt a case where each grading ends as `graded` says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selftest, "graded", graded)
        return SelfTest(lambda *_: OneByOne(Settings())).attempt(case, "cuda", "docker").failure


def trial(case: KnownSubmission, verdict: Verdict) -> str | None:
    """What is wrong with a case that was accepted with this verdict."""

    def graded(submission: KnownSubmission, *_: object) -> TrialGrading:
        return TrialGrading(
            verdict if submission is case else accepted(modes=REPLAYED, score_ns=10_000), "accepted", ""
        )

    return failure_of(case, graded)


DEVICE_CODE = PATCHED.model_copy(update={"host_only": False})
EXPECTED = "accepted where rejected was expected"


@pytest.mark.parametrize(
    ("case", "verdict", "why"),
    [
        pytest.param(PATCHED, accepted(modes=REPLAYED, score_ns=10_000), "", id="host code has no say in a launcher"),
        pytest.param(
            PATCHED, accepted(modes=REPLAYED, score_ns=5_000), "where honest work takes 10.0 µs", id="nor is it faster"
        ),
        pytest.param(PATCHED, accepted(score_ns=10_000), EXPECTED, id="in plain calls it has"),
        pytest.param(DEVICE_CODE, accepted(modes=REPLAYED, score_ns=10_000), EXPECTED, id="and so has device code"),
    ],
)
def test_what_counts_as_a_failed_attack(case: KnownSubmission, verdict: Verdict, why: str) -> None:
    failure = trial(case, verdict)
    assert why in (failure or "")
    assert (failure is None) == (why == "")


def test_host_code_alone_needs_a_twin_for_its_time() -> None:
    with pytest.raises(ValidationError, match="names its honest twin"):
        KnownSubmission.model_validate(PATCHED.model_dump() | {"twin": ""})


def test_a_time_that_seems_too_short_is_measured_again() -> None:
    tried: list[str] = []

    def graded(submission: KnownSubmission, *_: object) -> TrialGrading:
        tried.append(submission.label)
        slow = submission.label == "torch_mul" and tried.count(submission.label) < 3
        return TrialGrading(accepted(modes=REPLAYED, score_ns=20_000 if slow else 10_000), "accepted", "")

    assert failure_of(PATCHED, graded) is None
    assert tried == ["patched", "torch_mul"] * 3
