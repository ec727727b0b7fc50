"""What counts as a failed attack, where a launcher makes the calls and where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.verdict import Verdict
from kernelmark.services import selftest
from kernelmark.services.selftest import KnownSubmission, attempt
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
HONEST = KnownSubmission(folder=Path("torch_mul"), devices=("cuda",))


def trial(
    case: KnownSubmission, verdict: Verdict, monkeypatch: pytest.MonkeyPatch, *, twin_ns: int = 10_000
) -> str | None:
    """What is wrong with a case that was accepted with this verdict."""

    def graded(given: KnownSubmission, *_: object) -> tuple[Verdict, str, str]:
        return (verdict if given is case else accepted(modes=REPLAYED, score_ns=twin_ns)), "accepted", ""

    monkeypatch.setattr(selftest, "_graded", graded)
    monkeypatch.setattr(selftest, "honest", lambda: [HONEST])
    selftest._twin_score.cache_clear()
    return attempt(case, "cuda", "docker").failure


def test_host_code_has_no_say_in_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trial(PATCHED, accepted(modes=REPLAYED, score_ns=10_000), monkeypatch) is None


def test_it_must_not_be_faster_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = trial(PATCHED, accepted(modes=REPLAYED, score_ns=5_000), monkeypatch)
    assert failure is not None
    assert "where honest work takes 10.0 µs" in failure


def test_in_sealed_rounds_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = trial(PATCHED, accepted(score_ns=10_000), monkeypatch)
    assert failure is not None
    assert "accepted where rejected was expected" in failure


def test_an_attack_in_device_code_is_held_to_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    device_code = PATCHED.model_copy(update={"host_only": False})
    failure = trial(device_code, accepted(modes=REPLAYED, score_ns=10_000), monkeypatch)
    assert failure is not None
    assert "accepted where rejected was expected" in failure


def test_host_code_alone_needs_a_twin_for_its_time() -> None:
    with pytest.raises(ValidationError, match="names its honest twin"):
        KnownSubmission.model_validate(PATCHED.model_dump() | {"twin": ""})


def test_a_time_that_seems_too_short_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def graded(given: KnownSubmission, *_: object) -> tuple[Verdict, str, str]:
        tried.append(given.label)
        slow = given is HONEST and tried.count(given.label) < 3
        return accepted(modes=REPLAYED, score_ns=20_000 if slow else 10_000), "accepted", ""

    monkeypatch.setattr(selftest, "_graded", graded)
    monkeypatch.setattr(selftest, "honest", lambda: [HONEST])
    selftest._twin_score.cache_clear()
    assert attempt(PATCHED, "cuda", "docker").failure is None
    assert tried == ["patched", "torch_mul"] * 3
