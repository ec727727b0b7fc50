"""A board that is frozen before the deadline: no command shows what was graded since, until the problem closes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.problem import load
from harness.problem.schedule import Schedule
from harness.submission import Submission
from harness.wire.protocol import PROTOCOL
from kernelmark.project.settings import Settings
from kernelmark.record.recording import record
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rank
from tests import ranked
from tests.unit.conftest import Answering, Command
from tests.verdicts import accepted

NOW = datetime.now(UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EARLY, HIDDEN = "a" * 16, "b" * 16
TABLE = {"protocol": PROTOCOL, "problem": "double"}
EVERY = [
    ("board",),
    ("board", "--all", "double"),
    ("board", "--format", "json"),
    ("runs",),
    ("runs", "--author", "bob", "--format", "json"),
    ("show", HIDDEN),
    ("show", HIDDEN, "--format", "json"),
    ("show", HIDDEN[:6], "--diff"),
    ("problems", "list"),
    ("problems", "show", "double"),
    ("marks", "double"),
    ("marks", "double", "--csv", "marks.csv", "--feedback", "feedback"),
    ("similar", "double", "--threshold", "0"),
    ("regrade", "--all", "--dry-run"),
    ("audit", HIDDEN),
    ("compare", HIDDEN, EARLY),
    ("export", "--out", "exported"),
    ("board", "--write"),
    ("site", "build"),
]


def scheduled(project: Path, deadline: datetime, freeze: str) -> None:
    """Set when the problem closes and how long before that its board freezes."""
    file = project / "problems/double/problem.toml"
    task = [line for line in file.read_text().splitlines(keepends=True) if not line.startswith(("deadline", "freeze"))]
    rules = f"deadline = {deadline.isoformat()}\n" + (f'freeze = "{freeze}"\n' if freeze else "")
    file.write_text(rules + "".join(task))


@pytest.fixture
def frozen(competition: Path) -> Path:
    """Ada leads with what she submitted two days ago; an hour ago bob overtook her, in the freeze of a day."""
    sha256 = load(competition / "problems/double").sha256
    for author, run, ns, at in (("ada", EARLY, 50_000, NOW - 2 * DAY), ("bob", HIDDEN, 41_234, NOW - HOUR)):
        kernel = Submission.of(f"def twice(x, y): y.copy_(2 * x)  # {author}\n", "py", author=author, name="kernel.py")
        fields = {"author": author, "run": run, "score_ns": ns, "created_at": at, "submission": kernel}
        record(Settings.load(), kernel, accepted(**TABLE, problem_sha256=sha256, **fields))
    scheduled(competition, NOW + DAY, "2d")
    return competition


def shown(project: Path, message: str) -> bool:
    """Whether the hidden run or its time is in an output, or in a file that a command wrote."""
    written = [file for name in ("leaderboard/BOARD.md", "marks.csv") for file in project.glob(name)]
    folders = ("leaderboard/boards", "site", "feedback", "exported")
    written += [file for folder in folders for file in (project / folder).rglob("*") if file.is_file()]
    text = message + "".join(file.read_bytes().decode(errors="replace") for file in written)
    text = text.replace(f"run {HIDDEN}: was graded after its board was frozen", "").replace(f"run {HIDDEN[:6]}", "")
    return any(word in text for word in (HIDDEN, "41.2 µs", "41234"))


@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_no_command_shows_what_was_graded_in_the_freeze(
    arguments: tuple[str, ...], frozen: Path, command: Command
) -> None:
    result = command(*arguments)
    assert not shown(frozen, result.out + result.err)
    assert JsonlLedger(frozen / "leaderboard/results/double.jsonl").verify() == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("marks", "double", "--csv", "marks.csv"),
        ("similar", "double"),
        ("regrade", "--all", "--dry-run"),
        ("export", "--out", "exported"),
    ],
    ids=" ".join,
)
def test_participants_are_told_what_the_freeze_leaves_out(
    arguments: tuple[str, ...], frozen: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "double: the board is frozen, and shows nothing graded after"
    assert message in command(*arguments).err
    monkeypatch.setenv("KERNELMARK_ORGANIZER", "true")
    assert message not in command(*arguments).err


@pytest.mark.parametrize("arguments", [("board",), ("runs",), ("show", HIDDEN)], ids=" ".join)
def test_organizers_see_frozen_results_and_published_pages_do_not(
    arguments: tuple[str, ...], frozen: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMARK_ORGANIZER", "true")
    assert shown(frozen, command(*arguments).out)
    command("board", "--write")
    command("site", "build")
    assert not shown(frozen, "")


@pytest.mark.parametrize(
    ("deadline", "freeze"),
    [(NOW + DAY, ""), (NOW + 3 * DAY, "2d"), (NOW - HOUR / 2, "2d")],
    ids=["none", "yet", "over"],
)
def test_results_outside_a_freeze_are_shown(deadline: datetime, freeze: str, frozen: Path, command: Command) -> None:
    scheduled(frozen, deadline, freeze)
    for given in (("board",), ("runs",), ("show", HIDDEN), ("board", "--write"), ("site", "build")):
        assert shown(frozen, command(*given).out), given
    (table,) = json.loads(command("board", "--format", "json").out)["items"]
    assert [row["author"] for row in table["rows"]] == ["bob", "ada"]


def test_a_frozen_board_says_so_and_events_still_apply(frozen: Path, command: Command) -> None:
    (table,) = json.loads(command("board", "--format", "json").out)["items"]
    assert ([row["author"] for row in table["rows"]], table["frozen"] is None) == (["ada"], False)
    assert "the board is frozen, and shows nothing graded after" in command("board").out
    assert "double: the board is frozen, and shows nothing graded after" in command("runs").err
    assert "was graded after its board was frozen" in command("show", HIDDEN).err
    assert command("moderate", "disqualify", HIDDEN, "--actor", "grace", "--reason", "why").code == 0
    assert command("moderate", "disqualify", EARLY, "--actor", "grace", "--reason", "why").code == 0
    (table,) = json.loads(command("board", "--format", "json").out)["items"]
    assert ([*table["rows"]], [row["author"] for row in table["set_aside"]]) == ([], ["ada"])
    assert "frozen from" in (frozen / "leaderboard/boards/double.md").read_text()


def test_a_late_submission_in_the_freeze_is_told_both(competition: Path, command: Command, judge: Answering) -> None:
    """There is no table yet, so no standing that could say it."""
    scheduled(competition, NOW - HOUR, "2d")
    file = competition / "problems/double/problem.toml"
    file.write_text("late = { days = 3, penalty_per_day = 0.1 }\n" + file.read_text())
    (competition / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    sha256 = load(competition / "problems/double").sha256
    judge(accepted(**TABLE, problem_sha256=sha256, created_at=datetime.now(UTC)))
    result = command("submit", "double", "kernel.py")
    assert result.code == 0
    assert "double: this submission will not rank: 1 day late, factor 0.9: handed in" in result.err
    assert "double: the board is frozen, and shows nothing graded after" in result.err


def test_a_frozen_view_ranks_like_the_ledger_at_that_time(tmp_path: Path) -> None:
    index, path = Index(tmp_path / "index.sqlite"), tmp_path / "softmax.jsonl"
    view = JsonlLedger(path, index, NOW)
    for number in range(6):
        kernel = Submission.of(f"# {number % 2}\n", "py", author=f"author-{number % 2}", name="kernel.py")
        at = NOW + (number - 3) * HOUR
        view.append(accepted(submission=kernel, score_ns=50_000 - 5_000 * number, created_at=at))
        entries = [entry for entry in view.entries() if entry.verdict.created_at <= NOW]
        assert [table.rows for table in rank(view)] == [table.rows for table in ranked.rank(entries)]
        assert [entry.seq for entry in view.read()] == [entry.seq for entry in entries]
        assert [*rank(JsonlLedger(path, index))] == [*ranked.rank(view.entries())]
    assert (len(entries), view.verify()) == (4, 6)


def test_the_moments_of_a_freeze() -> None:
    rules = {"deadline": NOW, "grace": "1h", "freeze": "2d"}
    schedule = Schedule.model_validate(rules)
    moments = (NOW - 2 * DAY, NOW - 2 * DAY + HOUR, NOW + HOUR, NOW + 2 * HOUR)
    assert [schedule.frozen(moment) for moment in moments] == [None, NOW - 2 * DAY, NOW - 2 * DAY, None]
    assert Schedule.model_validate({"deadline": NOW}).frozen(NOW) is None
