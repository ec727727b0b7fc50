"""How long a grading usually takes, by the newest accepted ones like it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelmark.grading import recorder
from kernelmark.project.settings import Settings
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import accepted, failed


def usual_s(settings: Settings, slug: str, device: str, language: str) -> float | None:
    kind = {"problem": SimpleNamespace(slug=slug), "submission": SimpleNamespace(language=language)}
    job: Any = SimpleNamespace(settings=settings, device=device, **kind)
    return recorder.usual_s(job)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(root=tmp_path)


def test_it_is_the_median_of_the_newest_five_that_were_accepted(settings: Settings) -> None:
    ledger = JsonlLedger(settings.locate("results") / "softmax.jsonl")
    for seconds in (900, 900, 30, 10, 50, 20, 40):
        ledger.append(accepted().model_copy(update={"duration_ns": seconds * 10**9}))
    for other in (failed(), accepted(effort="quick"), accepted(device_kind="cpu")):
        ledger.append(other.model_copy(update={"duration_ns": 10**9}))
    assert usual_s(settings, "softmax", "cuda", "py") == 30
    assert usual_s(settings, "softmax", "cpu", "py") == 1
    assert usual_s(settings, "softmax", "cuda", "cu") is None


def test_gradings_on_this_device_take_precedence(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = JsonlLedger(settings.locate("results") / "softmax.jsonl")
    for name, seconds in (("NVIDIA H100", 10), ("NVIDIA H200", 30), ("NVIDIA H200", 50), ("NVIDIA H100", 12)):
        ledger.append(accepted(device_name=name).model_copy(update={"duration_ns": seconds * 10**9}))
    for here, expected in (("NVIDIA H200", 40), ("NVIDIA H100", 11), ("NVIDIA B200", 11), (None, 11)):
        monkeypatch.setattr(recorder, "device_name", lambda _kind, here=here: here)
        assert usual_s(settings, "softmax", "cuda", "py") == expected, here


def test_new_problems_and_broken_ledgers_have_no_usual_time(settings: Settings) -> None:
    assert usual_s(settings, "softmax", "cuda", "py") is None
    path = settings.locate("results") / "softmax.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    assert usual_s(settings, "softmax", "cuda", "py") is None
