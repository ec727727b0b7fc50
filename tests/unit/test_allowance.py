"""The limits a day: what counts, who is refused before anything is graded, and what the command line says."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.errors import UsageError
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import Allowance
from leaderboard.record.ledger import JsonlLedger
from tests.repository import commit, init
from tests.unit.conftest import Answering, Command
from tests.verdicts import accepted, failed

NOW = datetime.now(UTC)
KERNEL = "def twice(x, y): y.copy_(2 * x)\n"
TWO = "[limits]\ngradings_a_day = 2\n[teams]\nquickfix = ['ada', 'bob']\n"
WHO = "quickfix (ada) has used"


def used(author: str, hours_ago: float, seconds: float = 1, problem: str = "double", *, wrong: bool = False) -> Verdict:
    make: Callable[..., Verdict] = failed if wrong else accepted
    verdict = make(author=author, problem=problem, created_at=NOW - timedelta(hours=hours_ago))
    return verdict.model_copy(update={"duration_ns": round(seconds * 1e9)})


def record(project: Path, *verdicts: Verdict, exempt: bool = False) -> None:
    for verdict in verdicts:
        ledger = JsonlLedger(project / f"leaderboard/results/{verdict.problem.slug}.jsonl")
        ledger.append(verdict, exempt=exempt)


def limit(project: Path, text: str) -> None:
    settings = project / "kernelmark.toml"
    settings.write_text(f"{settings.read_text()}{text}")


def after(hours: float) -> str:
    """A moment as a message says it."""
    return f"{NOW + timedelta(hours=hours, seconds=59, microseconds=999_999):%Y-%m-%d %H:%M} UTC"


@pytest.mark.parametrize(
    ("limits", "recorded", "refused", "left"),
    [
        pytest.param("gradings_a_day = 2", [], "", "2 of 2 gradings", id="nothing used"),
        pytest.param("gradings_a_day = 2", [used("ada", 1)], "", "1 of 2 gradings", id="one used"),
        pytest.param(
            "gradings_a_day = 2",
            [used("ada", 5), used("ada", 3), used("ada", 1)],
            f"{WHO} 3 of 2 gradings in 24 hours; possible again from {after(21)}",
            f"none of 2 gradings; the next grading is possible from {after(21)}",
            id="above the limit, as after it was lowered",
        ),
        pytest.param(
            "gradings_a_day = 2", [used("ada", 25), used("eve", 1), used("ada", 1)], "", "1 of 2 gradings",
            id="yesterday's and another's",
        ),
        pytest.param(
            "gradings_a_day = 2", [used("bob", 4), used("ada", 2, wrong=True, problem="softmax")],
            f"{WHO} 2 of 2 gradings in 24 hours; possible again from {after(20)}",
            f"none of 2 gradings; the next grading is possible from {after(20)}",
            id="a teammate's, and a wrong one of another problem",
        ),
        pytest.param(
            "device_seconds_a_day = 60", [used("ada", 10, 30), used("ada", 5, 29)], "", "1 of 60 device seconds",
            id="seconds are left",
        ),
        pytest.param(
            "device_seconds_a_day = 60\ngradings_a_day = 3",
            [used("ada", 10, 30), used("ada", 5, 50), used("ada", 4, 20)],
            f"{WHO} 3 of 3 gradings and 100 of 60 device seconds in 24 hours; possible again from {after(19)}",
            f"none of 3 gradings, none of 60 device seconds; the next grading is possible from {after(19)}",
            id="of both, when neither is reached any more",
        ),
    ],
)  # fmt: skip
def test_which_gradings_count_towards_a_limit_and_for_how_long(
    limits: str, recorded: list[Verdict], refused: str, left: str, competition: Path
) -> None:
    limit(competition, f"[limits]\n{limits}\n[teams]\nquickfix = ['ada', 'bob']\n")
    record(competition, *recorded)
    assert Allowance(Settings.load()).left("ada") == left
    with pytest.raises(UsageError, match=f"^{re.escape(refused)}$") if refused else nullcontext():
        Allowance(Settings.load()).take("ada")


def test_without_limits_no_ledger_is_read(competition: Path) -> None:
    broken = competition / "leaderboard/results/double.jsonl"
    broken.parent.mkdir(parents=True)
    broken.write_text("no ledger\n")
    Allowance(Settings.load()).take("ada")
    assert Allowance(Settings.load()).left("ada") == ""


def test_what_one_command_admits_counts_at_once_with_its_usual_time(competition: Path) -> None:
    limit(competition, "[limits]\ndevice_seconds_a_day = 60\n")
    allowance = Allowance(Settings.load())
    allowance.take("ada", lambda: 40)
    allowance.take("ada", lambda: 40)
    with pytest.raises(UsageError, match="ada has used 80 of 60 device seconds"):
        allowance.take("ada", lambda: 40)
    allowance.take("eve", lambda: 40)


def test_gradings_for_an_organizer_do_not_count(competition: Path, command: Command, judge: Answering) -> None:
    limit(competition, TWO)
    record(competition, used("ada", 1), used("ada", 1), used("ada", 1), exempt=True)
    assert Allowance(Settings.load()).left("ada") == "2 of 2 gradings"
    (competition / "handins/ada").mkdir(parents=True)
    (competition / "handins/ada/kernel.py").write_text(KERNEL)
    for _ in range(3):
        judge(used("ada", 0))
        assert command("grade", "double", "handins").code == 0
    assert Allowance(Settings.load()).left("ada") == "2 of 2 gradings"


def test_submit_is_refused_before_anything_is_graded(competition: Path, command: Command, judge: Answering) -> None:
    limit(competition, TWO)
    (competition / "kernel.py").write_text(KERNEL)
    asked = judge(used("ada", 0), used("bob", 0)).asked
    submit = ("submit", "double", "kernel.py", "--author")
    assert "\n  left today  1 of 2 gradings\n" in command(*submit, "ada").out
    assert "\n  left today  none of 2 gradings; the next grading is possible from 2" in command(*submit, "bob").out
    result = command(*submit, "ada")
    assert (result.code, result.out, len(asked)) == (2, "", 2)
    why = "quickfix (ada) has used 2 of 2 gradings in 24 hours; possible again from "
    assert re.fullmatch(rf"kernelmark: error: {re.escape(why)}\d{{4}}-\d\d-\d\d \d\d:\d\d UTC\n", result.err)
    judge(used("ada", 0), used("eve", 0))
    assert command(*submit, "ada", "--no-record").code == 0, "what is not recorded is not limited"
    assert command(*submit, "eve").code == 0


def test_problems_list_says_what_is_left(competition: Path, command: Command) -> None:
    limit(competition, TWO)
    record(competition, used("organizer", 2))
    assert command("problems", "list").out.splitlines()[-1] == "you (organizer) have left today: 1 of 2 gradings"


@pytest.mark.parametrize("recording", [True, False])
def test_files_above_limits_are_skipped(recording: bool, competition: Path, command: Command, judge: Answering) -> None:
    limit(competition, TWO)
    record(competition, used("bob", 2))
    base = init(competition)
    paths = ("ada/a.py", "ada/b.py", "eve/c.py", "quickfix/d.py")
    commit(competition, {f"submissions/double/{path}": f"{KERNEL}# {path}\n" for path in paths})
    judge(used("ada", 0), used("eve", 0))
    flags = () if recording else ("--no-record",)
    result = command("grade", "--changed", base, "--junit", "junit.xml", "--summary", "summary.md", *flags)
    assert result.code == 2
    cases = {
        f"{each.get('classname')}/{each.get('name')}": next(
            (kind.get("message", "") for kind in each if kind.tag != "system-out"), None
        )
        for each in ElementTree.parse(competition / "junit.xml").iter("testcase")
    }
    reasons = {path.removeprefix("submissions/double/"): why for path, why in cases.items()}
    assert (reasons["ada/a.py"], reasons["eve/c.py"]) == (None, None)
    assert str(reasons["ada/b.py"]).startswith("quickfix (ada) has used 2 of 2 gradings in 24 hours")
    team = "is in a folder with the name of a team, quickfix; use a folder of your own; members: ada, bob"
    assert str(reasons["quickfix/d.py"]).endswith(team)
    summary = (competition / "summary.md").read_text()
    assert "has used 2 of 2 gradings" in summary
    assert ("none of 2 gradings" in summary) == recording
