"""The final selection: authors choose, before a problem closes, which of their sources count."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.problem import load
from harness.submission import Submission
from harness.wire.protocol import PROTOCOL
from kernelmark.course import regrade
from kernelmark.project.settings import Settings
from kernelmark.record.recording import record
from kernelmark.record.records import current, ledger, tables
from kernelmark.text.standings import standing
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.merge import merge
from leaderboard.record.selection import Selection, selected
from leaderboard.record.teams import Teams
from tests.unit.conftest import Command
from tests.verdicts import accepted, failed

NOW = datetime.now(UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
HEAD = 'author = "ada"\ndevice = "cpu"\nsandbox = "process"\nselection = 2\n[teams]\nquick = ["eve", "zoe"]\n'
FAST, MIDDLE, SLOW, BOB, EVE, ZOE = ("abcdef"[at] * 16 for at in range(6))
LEDGER = "leaderboard/results/double.jsonl"


def closes(project: Path, moment: datetime) -> None:
    file = project / "problems/double/problem.toml"
    task = [line for line in file.read_text().splitlines(keepends=True) if not line.startswith("deadline")]
    file.write_text(f"deadline = {moment.isoformat()}\n" + "".join(task))


@pytest.fixture
def open_problem(competition: Path) -> Path:
    """An open problem with three sources of ada's, one of bob's, and one of each in a team."""
    (competition / "kernelmark.toml").write_text(HEAD)
    sha256 = load(competition / "problems/double").sha256
    for author, run, ns in (
        ("ada", FAST, 10_000), ("ada", MIDDLE, 20_000), ("ada", SLOW, 30_000), ("bob", BOB, 15_000),
        ("eve", EVE, 12_000), ("zoe", ZOE, 40_000),
    ):  # fmt: skip
        kernel = Submission.of(f"# {run}\n", "py", author=author, name="kernel.py")
        fields = {"run": run, "score_ns": ns, "created_at": NOW - DAY, "submission": kernel, "protocol": PROTOCOL}
        record(Settings.load(), kernel, accepted(problem="double", problem_sha256=sha256, **fields))
    closes(competition, NOW + DAY)
    return competition


def ranked(command: Command) -> list[str]:
    (table,) = json.loads(command("board", "--format", "json").out)["items"]
    return [row["run"] for row in table["rows"]]


def test_a_selection_counts_once_the_problem_is_closed(open_problem: Path, command: Command) -> None:
    before = ranked(command)
    assert before == [FAST, EVE, BOB]
    assert command("select", SLOW[:4], "--author", "ada").code == 0
    assert command("select", SLOW[:4], MIDDLE[:4], "--author", "ada").out.split() == [SLOW, MIDDLE]
    assert command("select", ZOE, "--author", "eve").code == 0, "of the team"
    assert ranked(command) == before
    closes(open_problem, NOW - HOUR / 2)
    assert ranked(command) == before, "what was selected after the problem closed does not count"
    closes(open_problem, datetime.now(UTC))
    assert ranked(command) == [BOB, MIDDLE, ZOE]
    assert command("site", "build").code == 0
    (board,) = json.loads((open_problem / "site/problems/double.json").read_text())["boards"]
    assert [row["run"] for row in board["rows"]] == [BOB, MIDDLE, ZOE]
    assert command("verify").code == 0


def test_selecting_in_vain_warns(open_problem: Path, command: Command, caplog: pytest.LogCaptureFixture) -> None:
    kernel, run = Submission.of("# wrong\n", "py", author="ada", name="kernel.py"), "4" * 16
    sha256 = load(open_problem / "problems/double").sha256
    fields = {"run": run, "created_at": NOW - DAY, "submission": kernel, "problem_sha256": sha256}
    record(Settings.load(), kernel, failed(problem="double", protocol=PROTOCOL, **fields))
    result = command("select", run, FAST, "--author", "ada")
    assert (result.code, result.out.split()) == (0, [run, FAST])
    assert f"run {run} is not accepted (wrong answer)" in caplog.text
    caplog.clear()
    assert command("moderate", "disqualify", SLOW, "--actor", "grace", "--reason", "reads old memory").code == 0
    assert command("select", SLOW, "--author", "ada").code == 0
    assert f"run {SLOW} is disqualified, and ranks nowhere" in caplog.text
    caplog.clear()
    assert command("select", FAST, "--author", "ada").code == 0
    assert caplog.text == ""


def test_the_final_grading_takes_what_was_selected(open_problem: Path, command: Command) -> None:
    command("select", SLOW, MIDDLE, "--author", "ada")
    reference = open_problem / "problems/double/reference.py"
    reference.write_text(reference.read_text() + "# changed\n")
    closes(open_problem, datetime.now(UTC))
    settings = Settings.load()
    (candidates,) = regrade._candidates(ledger(settings, "double"), current(settings), settings).values()
    due = {row.run: reason.partition("; ")[0] for kind, row, reason in candidates if kind == "due"}
    assert {run for run, reason in due.items() if reason == "selected"} == {SLOW, MIDDLE}
    assert {FAST, EVE, BOB} <= due.keys()


def test_a_source_that_was_not_selected_is_said_to_have_no_place(open_problem: Path, command: Command) -> None:
    command("select", SLOW, "--author", "ada")
    closes(open_problem, datetime.now(UTC))
    fast = ledger(Settings.load(), "double").find(FAST)
    assert fast is not None
    (table,) = tables(Settings.load(), "double")
    assert standing(fast, table).startswith(f"ada's run {SLOW} (30.0 µs [29.9, 30.1]) keeps rank 3 of 3"), "not better"
    without = table.model_copy(update={"rows": tuple(row for row in table.rows if row.author != "ada")})
    assert standing(fast, without) == "none: other sources were selected to count", "those are not graded yet"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((FAST, MIDDLE, SLOW), "names 3 sources, and 2 may count"),
        ((FAST, BOB), f"run {BOB} is not of ada"),
        ((BOB,), "is not of ada"),
        (("99",), "was never recorded here"),
    ],
)
def test_refused_selections(arguments: tuple[str, ...], error: str, open_problem: Path, command: Command) -> None:
    before = (open_problem / LEDGER).read_bytes()
    result = command("select", *arguments, "--author", "ada")
    assert (result.code, error in result.err) == (2, True), result.err
    closes(open_problem, NOW - HOUR)
    assert "is closed since" in command("select", FAST, "--author", "ada").err
    (open_problem / "kernelmark.toml").write_text(HEAD.replace("selection = 2\n", ""))
    assert "set `selection`" in command("select", FAST, "--author", "ada").err
    assert (open_problem / LEDGER).read_bytes() == before


def test_verify_and_merge_know_selections(open_problem: Path, command: Command) -> None:
    path = open_problem / LEDGER
    base = path.read_bytes()
    command("select", SLOW, "--author", "ada")
    ours = path.read_bytes()
    path.write_bytes(base)
    command("select", BOB, "--author", "bob")
    path.write_bytes(merge(ours, path.read_bytes(), base))
    kept = [entry.selection.author for entry in JsonlLedger(path).read() if entry.kind == "selection"]
    assert sorted(kept) == ["ada", "bob"]
    forged = Selection(author="bob", runs=("9" * 16,), sha256s=("0" * 64,), created_at=NOW)
    JsonlLedger(path).select(forged)
    result = command("verify")
    assert (result.code, f"selects run {'9' * 16}, which is not in this ledger" in result.out) == (7, True)


def test_the_last_selection_in_time_counts_for_a_team() -> None:
    def of(author: str, digit: str, at: timedelta) -> Selection:
        return Selection(author=author, runs=("a" * 16,), sha256s=(digit * 64,), created_at=NOW + at)

    given = [of("eve", "1", -2 * HOUR), of("zoe", "2", -HOUR), of("eve", "3", HOUR), of("bob", "4", -HOUR)]
    teams = Teams({"quick": ("eve", "zoe")})
    for imported_last in (given, given[::-1]):
        assert selected(imported_last, NOW, teams) == {"quick": frozenset({"2" * 64}), "bob": frozenset({"4" * 64})}


def test_a_table_whose_authors_selected_sources_of_another_is_left_out(open_problem: Path, command: Command) -> None:
    kernel, run = Submission.of("# elsewhere\n", "py", author="ada", name="kernel.py"), "9" * 16
    sha256 = load(open_problem / "problems/double").sha256
    fields = {"run": run, "created_at": NOW - DAY, "submission": kernel, "protocol": PROTOCOL, "device_name": "Another"}
    record(Settings.load(), kernel, accepted(problem="double", problem_sha256=sha256, **fields))
    assert command("select", SLOW, "--author", "ada").code == 0
    closes(open_problem, datetime.now(UTC))
    assert ranked(command) == [EVE, BOB, SLOW]
    assert command("site", "build").code == 0
