"""`kernelmark runs`: every recorded grading, newest first, and where it stands."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from leaderboard.record.ledger import JsonlLedger
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted, failed


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of four gradings, oldest first."""
    (tmp_path / "kernelmark.toml").touch()
    monkeypatch.chdir(tmp_path)
    verdicts = [
        accepted(author="ada", score_ns=90_000, source="first"),
        failed(author="ada"),
        accepted(author="bob", score_ns=70_000),
        accepted(author="ada", score_ns=50_000, source="third"),
    ]
    ledger = JsonlLedger(tmp_path / "leaderboard/results/softmax.jsonl")
    for hours, verdict in enumerate(verdicts):
        ledger.append(verdict.model_copy(update={"created_at": EPOCH + timedelta(hours=hours)}))
    return [verdict.run for verdict in verdicts]


def test_runs_that_a_board_leaves_out_are_listed_too(recorded: list[str], invoke: Command) -> None:
    said = invoke("runs", "softmax")
    title, _, *rows = said.out.splitlines()
    assert title == "4 gradings"
    assert [row.split()[-1] for row in rows] == recorded[::-1]
    assert "rank 1 of 2" in rows[0]
    assert "rank 2 of 2" in rows[1]
    assert "wrong answer" in rows[2]
    assert "rank" not in rows[3], "a better one of its author has the row"
    assert "90.0 µs" in rows[3]


@pytest.mark.parametrize(
    ("options", "expected", "title"),
    [
        (("--author", "bob"), [2], "1 grading"),
        (("--last", "2"), [3, 2], "the newest 2 of 4 recorded gradings"),
        (("--author", "eve"), [], "no grading was recorded yet of the author eve"),
    ],
)
def test_a_list_may_be_of_one_author_and_shorter(
    recorded: list[str], invoke: Command, options: tuple[str, ...], expected: list[int], title: str
) -> None:
    lines = invoke("runs", *options).out.splitlines()
    assert lines[0] == title
    assert [row.split()[-1] for row in lines[2:]] == [recorded[each] for each in expected]
    document = json.loads(invoke("runs", *options, "--format", "json").out)
    assert [each["run"] for each in document] == [recorded[each] for each in expected]
