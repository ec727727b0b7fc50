"""`kernelmark runs`: every recorded grading, newest first, and where it stands."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from kernelmark.text.recorded import RecordedRun, runs
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


@pytest.fixture(params=[80, 200], autouse=True)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """That of the terminal: a row has two lines in the first, and one in the second."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def listed(out: str, width: int) -> tuple[str, list[list[str]]]:
    """The title of a list, and the words of each row, of which the first line is that of the column heads."""
    title, *lines = out.splitlines()
    assert all(len(line) <= width for line in lines)
    several = 2 if any(line.startswith("  run ") for line in lines) else 1
    joined = [" ".join(lines[at : at + several]) for at in range(0, len(lines), several)]
    return title, [row.split() for row in joined[1:]]


def test_runs_that_a_board_leaves_out_are_listed_too(recorded: list[str], invoke: Command, width: int) -> None:
    title, rows = listed(invoke("runs", "softmax").out, width)
    assert title == "4 gradings"
    for row, run in zip(rows, recorded[::-1], strict=True):
        assert run in row
    newest, second, failed_one, oldest = map(" ".join, rows)
    assert "rank 1 of 2" in newest
    assert "rank 2 of 2" in second
    assert "wrong answer" in failed_one
    assert "rank" not in oldest, "a better one of its author has the row"
    assert "90.0 µs [89.5, 90.5]" in oldest


def test_a_run_that_is_not_its_teams_best_has_no_rank(recorded: list[str], invoke: Command, width: int) -> None:
    Path("kernelmark.toml").write_text('[teams]\nquickfix = ["ada", "bob"]\n')
    _, rows = listed(invoke("runs").out, width)
    assert [("rank 1 of 1" in " ".join(row), "rank" in row, row.count("ada")) for row in rows] == [
        (True, True, 1),
        (False, False, 0),
        (False, False, 1),
        (False, False, 1),
    ]


@pytest.mark.parametrize(
    ("options", "expected", "title"),
    [
        (("--author", "bob"), [2], "1 grading"),
        (("--last", "2"), [3, 2], "the newest 2 of 4 recorded gradings"),
        (("--author", "eve"), [], "no grading was recorded yet of the author eve"),
    ],
)
def test_a_list_may_be_of_one_author_and_shorter(
    recorded: list[str], invoke: Command, options: tuple[str, ...], expected: list[int], title: str, width: int
) -> None:
    said, rows = listed(invoke("runs", *options).out, width)
    assert said == title
    assert all(recorded[each] in row for each, row in zip(expected, rows, strict=True))
    document = json.loads(invoke("runs", *options, "--format", "json").out)
    assert [each["run"] for each in document] == [recorded[each] for each in expected]


def test_only_names_are_shortened_to_the_width(width: int) -> None:
    wide = accepted(author="a" * 30, name="k" * 60 + ".py", score_ns=834_000, low_ns=555_000, high_ns=4_220_000)
    found = [RecordedRun(wide, "interval too wide to rank, stale"), RecordedRun(accepted(), "rank 1 of 1")]
    text = "\n".join(runs(found, 2, width=width))
    _, [long, _] = listed(text, width)
    shown = " ".join(long)
    for figure in ("2026-01-01 00:00", "834 µs [555 µs, 4.22 ms]", "interval too wide to rank, stale", wide.run):
        assert figure in shown
    assert ("a" * 30 in shown) == ("k" * 60 in shown) == (width == 200)
    assert ("… by a" in shown) == (width == 80)
