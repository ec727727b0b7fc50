"""Where an author stands on the boards, as `kernelmark problems list` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record import records
from leaderboard.record.current import Current
from leaderboard.record.entry import encode
from leaderboard.standings.ranking import Table, rank
from tests.verdicts import accepted


def tables(current: Current | None, *verdicts: Verdict) -> list[Table]:
    entries, last = [], None
    for verdict in verdicts:
        last, _ = encode(last, verdict.to_json().encode())
        entries.append(last)
    return rank(entries, current)


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
    ranked = tables(current, accepted(author="bob", score_ns=90_000), accepted(author="ada", score_ns=50_000))
    monkeypatch.setattr(records, "tables", lambda _: ranked)
    places = records.places(Settings(root=Path(), author=author))
    assert {slug: [place.text for place in each] for slug, each in places.items()} == found
