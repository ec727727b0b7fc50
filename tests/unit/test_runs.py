"""`kernelmark runs`: every recorded grading, newest first, and where it and its author stand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kernelmark.project.settings import Settings
from kernelmark.record import records
from kernelmark.text.standings import RecordedRun, runs
from kernelmark.text.terminal import rendered
from leaderboard.record.current import Current
from leaderboard.record.ledger import JsonlLedger
from tests.documents import items
from tests.ranked import rank
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted, chained, failed


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


def listed(out: str) -> tuple[str, list[list[str]]]:
    """The title of a list, and the words of each row."""
    title, *rows = out.splitlines()
    return title, [row.split() for row in rows[1:]]


def test_runs_that_a_board_leaves_out_are_listed_too(recorded: list[str], invoke: Command) -> None:
    title, rows = listed(invoke("runs", "softmax").out)
    assert title == "4 gradings"
    for row, run in zip(rows, recorded[::-1], strict=True):
        assert run in row
    newest, second, failed_one, oldest = map(" ".join, rows)
    assert "rank 1 of 2" in newest
    assert "rank 2 of 2" in second
    assert "wrong answer" in failed_one
    assert "rank" not in oldest, "a better one of its author has the row"
    assert "90.0 µs [89.5, 90.5]" in oldest


def test_the_record_of_a_problem_is_found_from_its_own_directory(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    JsonlLedger(project / "leaderboard/results/double.jsonl").append(accepted(author="eve", problem="double"))
    monkeypatch.chdir(project / "problems" / "double")
    for command in ("board", "runs", "marks"):
        assert "eve" in run(command, ".").out
        assert run(command, "x" * 5000).code == 2, "no file can have that name"


def test_ranks_of_interpreted_kernels_say_so(recorded: list[str], invoke: Command) -> None:
    JsonlLedger(Path("leaderboard/results/softmax.jsonl")).append(accepted(author="eve", interpreted=True))
    _, rows = listed(invoke("runs", "softmax", "--author", "eve").out)
    assert "rank 1 of 1, Triton interpreter" in " ".join(rows[0])
    assert "interpreter" not in invoke("runs", "softmax", "--author", "bob").out


def test_a_run_that_is_not_its_teams_best_has_no_rank(recorded: list[str], invoke: Command) -> None:
    Path("kernelmark.toml").write_text('[teams]\nquickfix = ["ada", "bob"]\n')
    _, rows = listed(invoke("runs").out)
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
    recorded: list[str], invoke: Command, options: tuple[str, ...], expected: list[int], title: str
) -> None:
    said, rows = listed(invoke("runs", *options).out)
    assert said == title
    assert all(recorded[each] in row for each, row in zip(expected, rows, strict=True))
    document = items(invoke("runs", *options, "--format", "json").out)
    assert [each["run"] for each in document] == [recorded[each] for each in expected]


def test_a_narrow_terminal_shows_every_figure_whole() -> None:
    wide = accepted(author="a" * 30, name="k" * 50 + ".py", score_ns=834_000, low_ns=555_000, high_ns=4_220_000)
    found = [RecordedRun(wide, "interval too wide to rank, stale"), RecordedRun(accepted(), "rank 1 of 1")]
    lines = list(runs(found, 2))
    shown = rendered(lines, 60, colours=False)
    assert max(map(len, shown.splitlines())) <= 60 < max(map(len, lines))
    for figure in (
        "2026-01-01 00:00",
        "834 µs [555 µs, 4.22 ms]",
        "interval too wide to rank, stale",
        wide.run,
        "k" * 50,
    ):
        assert figure in shown


# ---- where an author stands


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
