"""Where an author stands on the boards, as `kernelmark problems list` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelmark.project.settings import Settings
from kernelmark.record import records
from leaderboard.record.current import Current
from leaderboard.standings.ranking import rank
from tests.verdicts import accepted, chained


@pytest.mark.parametrize(
    ("author", "current", "found"),
    [
        ("ada", None, {"softmax": ["1 of 2 on NVIDIA H200, plain calls"]}),
        ("bob", None, {"softmax": ["2 of 2 on NVIDIA H200, plain calls"]}),
        ("eve", None, {}),
        ("ada", Current(problems={"softmax": "0" * 64}, protocol=1), {}),  # a board of an older problem
    ],
)
def test_places(
    author: str, current: Current | None, found: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = rank(chained(accepted(author="bob", score_ns=90_000), accepted(score_ns=50_000)), current)
    monkeypatch.setattr(records, "tables", lambda _: ranked)
    places = records.places(Settings(root=Path(), author=author))
    assert {slug: [place.text for place in each] for slug, each in places.items()} == found
