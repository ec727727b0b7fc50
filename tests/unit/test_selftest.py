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


def trial(case: KnownSubmission, verdict: Verdict, *, twin_ns: int = 10_000) -> str | None:
    """What is wrong with a case that was accepted with this verdict."""

    def graded(given: KnownSubmission, *_: object) -> TrialGrading:
        return TrialGrading(verdict if given is case else accepted(modes=REPLAYED, score_ns=twin_ns), "accepted", "")

    return failure_of(case, graded)


def test_host_code_has_no_say_in_a_launcher() -> None:
    assert trial(PATCHED, accepted(modes=REPLAYED, score_ns=10_000)) is None


def test_it_must_not_be_faster_for_that() -> None:
    failure = trial(PATCHED, accepted(modes=REPLAYED, score_ns=5_000))
    assert failure is not None
    assert "where honest work takes 10.0 µs" in failure


def test_in_sealed_rounds_it_has() -> None:
    failure = trial(PATCHED, accepted(score_ns=10_000))
    assert failure is not None
    assert "accepted where rejected was expected" in failure


def test_an_attack_in_device_code_is_held_to_what_is_expected() -> None:
    device_code = PATCHED.model_copy(update={"host_only": False})
    failure = trial(device_code, accepted(modes=REPLAYED, score_ns=10_000))
    assert failure is not None
    assert "accepted where rejected was expected" in failure


def test_host_code_alone_needs_a_twin_for_its_time() -> None:
    with pytest.raises(ValidationError, match="names its honest twin"):
        KnownSubmission.model_validate(PATCHED.model_dump() | {"twin": ""})


def test_a_time_that_seems_too_short_is_measured_again() -> None:
    tried: list[str] = []

    def graded(given: KnownSubmission, *_: object) -> TrialGrading:
        tried.append(given.label)
        slow = given.label == "torch_mul" and tried.count(given.label) < 3
        return TrialGrading(accepted(modes=REPLAYED, score_ns=20_000 if slow else 10_000), "accepted", "")

    assert failure_of(PATCHED, graded) is None
    assert tried == ["patched", "torch_mul"] * 3
