"""Which sources may be shown when, and what a deadline does to `submit`; everything fails closed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import harness.judge
import kernelmark
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import rules
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.visibility import Rule
from tests.unit.conftest import Answering, Command
from tests.verdicts import accepted

DEADLINE = datetime(2026, 12, 1, 22, 59, 59, tzinfo=UTC)
AFTER, AT = DEADLINE + timedelta(seconds=1), DEADLINE
HOUR = timedelta(hours=1)


def rule(visibility: str, deadline: datetime | None = DEADLINE, problem: str = "double", **schedule: object) -> Rule:
    return Rule.model_validate({"problem": problem, "visibility": visibility, "deadline": deadline, **schedule})


@pytest.mark.parametrize(
    ("found", "now", "visible"),
    [
        (rule("public"), AT, True),
        (rule("public", None), AT, True),
        (rule("public", AFTER), AT, True),
        (rule("after_deadline"), AT, False),
        (rule("after_deadline"), AFTER, True),
        (rule("after_deadline", None), AFTER, False),
        (rule("after_deadline", grace="1h"), DEADLINE + HOUR, False),
        (rule("after_deadline", grace="1h"), AFTER + HOUR, True),
        (rule("after_deadline", late={"days": 2, "penalty_per_day": 0.1}), DEADLINE + 48 * HOUR, False),
        (rule("after_deadline", late={"days": 2, "penalty_per_day": 0.1}), AFTER + 48 * HOUR, True),
        (rule("never"), AFTER, False),
        (rule("public"), AFTER.replace(tzinfo=None), False),
    ],
)
def test_a_source_is_shown_only_where_that_is_known_to_be_allowed(found: Rule, now: datetime, visible: bool) -> None:
    assert (found.hidden(now) == "") is visible


def set_rules(competition: Path, text: str) -> None:
    path = competition / "problems/double/problem.toml"
    path.write_text(text + path.read_text())


@pytest.mark.parametrize("text", ["deadline = 2026-12-01T23:59:59\n", 'deadline = "soon"\n', "deadline = 5\n", "dead"])
def test_a_deadline_that_cannot_be_read_closes_the_problem(competition: Path, command: Command, text: str) -> None:
    set_rules(competition, text)
    (competition / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    result = command("submit", "double", "kernel.py", "--late", "grace")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "problem.toml" in result.err
    assert not (competition / "leaderboard").exists()
    assert "double" not in rules(Settings.load())


def test_after_the_deadline_only_an_organizer_lets_one_in_and_it_does_not_rank(
    competition: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rules(competition, "deadline = 2020-01-01T00:00:00+01:00\n")
    (competition / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    given: list[Verdict] = []

    def grade(*_: object, **__: object) -> Verdict:
        given.append(accepted(problem="double"))
        return given[-1]

    monkeypatch.setattr(harness.judge, "grade", grade)
    refused = command("submit", "double", "kernel.py")
    assert (refused.code, given) == (2, [])
    assert "takes no more submissions, closed since 2020-01-01 00:00 UTC+01:00" in refused.err
    for nobody in ("", "x" * 101, "\udcff"):
        result = command("submit", "double", "kernel.py", "--late", nobody)
        assert (result.code, result.err.count("\n"), given) == (2, 1, [])
    let_in = command("submit", "double", "kernel.py", "--late", "grace")
    assert let_in.code == 0
    assert "standing    none: it is late, and does not rank" in let_in.out
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    assert [entry.kind for entry in ledger.read()] == ["moderation", "verdict"]
    assert "| late | ada |" in (competition / "leaderboard/BOARD.md").read_text()
    assert (
        command("moderate", "reinstate", given[0].run, "--actor", "grace", "--reason", "our server was down").code == 0
    )
    assert "| 1 | ada |" in (competition / "leaderboard/BOARD.md").read_text()


@pytest.mark.parametrize(
    ("ago", "state", "message"),
    [
        (timedelta(minutes=20), "", ""),
        (timedelta(hours=3), "late", "late: 1 day late, factor 0.75: handed in "),
        (timedelta(hours=30), "late", "late: 2 days late, factor 0.5: handed in "),
    ],
)
def test_in_the_grace_period_it_ranks_and_after_it_the_late_policy_lets_it_in(
    ago: timedelta, state: str, message: str, competition: Path, command: Command, judge: Answering
) -> None:
    deadline = (datetime.now(UTC) - ago).isoformat(timespec="seconds")
    set_rules(competition, f'deadline = {deadline}\ngrace = "1h"\nlate = {{ days = 2, penalty_per_day = 0.25 }}\n')
    (competition / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    judge(accepted(problem="double"))
    ended = command("submit", "double", "kernel.py")
    assert ended.code == 0, ended.err
    assert ("standing    none: it is late, and does not rank" in ended.out) == bool(state)
    board = (competition / "leaderboard/BOARD.md").read_text().replace("\\", "")
    assert message in board
    assert ("| late | ada |" in board) == bool(state)
    assert ("(late policy)" in board) == bool(state)
    page = (competition / "leaderboard/boards/double.md").read_text()
    assert "with 1h of grace; late until " in page


def test_python_records_what_is_late_without_a_rank(competition: Path, judge: Answering) -> None:
    deadline = (datetime.now(UTC) - timedelta(hours=3)).isoformat(timespec="seconds")
    set_rules(competition, f"deadline = {deadline}\nlate = {{ days = 2, penalty_per_day = 0.25 }}\n")
    judge(accepted(problem="double"))
    kernelmark.grade("double", "def twice(x, y): y.copy_(2 * x)\n", author="ada", record=True)
    assert "| late | ada |" in (competition / "leaderboard/BOARD.md").read_text()
