"""Marks from the ledger: `kernelmark marks`, and `kernelmark grade --resume`, with a prepared judge."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.marks import MarksRule, SpeedupPoints
from harness.problem import load
from harness.submission import Submission
from harness.verdict import CaseResult, Outcome, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark.course.points import Marking
from kernelmark.project.settings import Settings
from kernelmark.record import recording
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from tests.repository import commit, init
from tests.unit.conftest import Answering, Command
from tests.verdicts import accepted, failed

KERNEL = "def twice(x, y): y.copy_(2 * x)\n"


def recorded(
    author: str, make: Callable[..., Verdict] = accepted, text: str = "", problem: str = "", **changes: object
) -> str:
    """Record a verdict on the problem as it is, or was; returns its run."""
    submission = Submission.of(KERNEL + text, "py", author=author, name="kernel.py")
    fields = {"problem": "double", "problem_sha256": problem or load(Path("problems/double")).sha256}
    verdict = make(submission=submission, protocol=PROTOCOL, **fields, **changes)
    recording.record(Settings.load(), submission, verdict)
    return verdict.run


def runs() -> list[str]:
    ledger = JsonlLedger(Path("leaderboard/results/double.jsonl"))
    return [entry.verdict.run for entry in ledger.read() if entry.kind == VERDICT]


def marks(command: Command, *options: str) -> dict[str, dict[str, str]]:
    result = command("marks", "double", *options)
    assert result.code == 0, result.err
    return {row["author"]: row for row in csv.DictReader(io.StringIO(result.out))}


@pytest.fixture
def handins(competition: Path) -> Path:
    (competition / "handins").mkdir()
    for name in ("ada", "bob", "cyd"):
        (competition / f"handins/{name}.py").write_text(KERNEL)
    return competition


def test_recorded_gradings_are_not_repeated(handins: Path, command: Command, judge: Answering) -> None:
    first = recorded("ada")
    recorded("bob", text="# another source")
    recorded("cyd", problem="0" * 64)
    fake = judge(*(accepted(author=name, run=str(place) * 16) for place, name in enumerate(("bob", "cyd"), 1)))
    result = command("grade", "double", "handins", "--resume", "--csv", "marks.csv", "--feedback", "feedback")
    assert result.code == 0, result.out + result.err
    assert [submission.author for _, submission, *_ in fake.asked] == ["bob", "cyd"]
    with (handins / "marks.csv").open(newline="", encoding="utf-8-sig") as file:
        assert [row["run"] for row in csv.DictReader(file)] == [first, "1" * 16, "2" * 16]
    assert f"run         {first}" in (handins / "feedback/ada.txt").read_text()
    assert len(runs()) == 5


def test_without_resume_everything_is_graded_again(handins: Path, command: Command, judge: Answering) -> None:
    recorded("ada")
    fake = judge(*(accepted(author=name) for name in ("ada", "bob", "cyd")))
    assert command("grade", "double", "handins").code == 0
    assert len(fake.asked) == 3


def test_a_resumed_branch_uses_no_limit_for_known_results(
    competition: Path, command: Command, judge: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMARK_LIMITS", '{"gradings_a_day": 1}')
    base = init(competition)
    commit(competition, {f"submissions/double/{name}/kernel.py": KERNEL for name in ("ada", "bob")})
    now = datetime.now(UTC)
    recorded("ada", created_at=now)
    fake = judge(accepted(author="bob"))
    result = command("grade", "--changed", base, "--resume")
    assert (result.code, [each.author for _, each, *_ in fake.asked]) == (0, ["bob"]), result.out


def test_marks_are_those_of_the_board_and_else_of_the_newest_grading(competition: Path, command: Command) -> None:
    recorded("ada", text="# slower", score_ns=2_000)
    best = recorded("ada", score_ns=1_000)
    recorded("ada", failed, "# wrong")
    recorded("bob", failed, "# first")
    last = recorded("bob", failed, "# last", outcome=Outcome.TIMEOUT)
    recorded("cyd", problem="0" * 64)
    now_wrong = recorded("cyd", failed)
    wide = recorded("dan", score_ns=1_000, high_ns=3_000)
    out = recorded("eve")
    assert command("moderate", "disqualify", out, "--actor", "grace", "--reason", "copied").code == 0
    found = marks(command)
    assert {author: row["run"] for author, row in found.items()} == {
        "ada": best, "bob": last, "cyd": now_wrong, "dan": wide, "eve": out,
    }  # fmt: skip
    assert (found["ada"]["time_ns"], found["ada"]["message"], found["cyd"]["time_ns"]) == ("1000", "", "")
    assert (found["dan"]["time_ns"], found["dan"]["message"][:25]) == ("1000", "interval too wide to rank")
    assert "disqualified" in found["eve"]["message"]
    result = command("marks", "double", "--csv", "out/marks.csv", "--feedback", "out/feedback")
    assert (result.code, result.out) == (0, "")
    assert "5 files in out/feedback/" in result.err
    assert "accepted: 1.00 µs" in (competition / "out/feedback/ada.txt").read_text()


def test_a_team_has_one_mark_for_all_its_members(competition: Path, command: Command) -> None:
    recorded("ada", failed)
    best = recorded("bob")
    with (competition / "kernelmark.toml").open("a") as settings:
        settings.write('[teams]\nquick = ["ada", "bob", "zoe"]\n')
    found = marks(command)
    assert {author: (row["team"], row["run"]) for author, row in found.items()} == dict.fromkeys(
        ("ada", "bob", "zoe"), ("quick", best)
    )


@pytest.mark.parametrize(
    ("action", "reason", "expected"),
    [
        ("late", "2 days late, factor 0.8: handed in 2026-12-02 01:30 UTC+01:00, deadline 2026-11-30 23:59 UTC+01:00",
         ("2026-12-02T01:30:00+01:00", "2", "0.8")),
        ("late", "3 days late, factor 1e-06: handed in 2026-12-03 01:30 UTC, deadline 2026-11-30 23:59 UTC",
         ("2026-12-03T01:30:00+00:00", "3", "1e-06")),
        ("late", "4 days late: handed in 2026-12-04 01:30 UTC, deadline 2026-11-30 23:59 UTC",
         ("2026-12-04T01:30:00+00:00", "4", "")),
        ("annotate", "graded after the deadline, but handed in on time, 2026-11-30 20:00 UTC",
         ("2026-11-30T20:00:00+00:00", "0", "1")),
        ("annotate", "looks fine", ("2026-11-01T10:00:00+00:00", "0", "1")),
    ],
)  # fmt: skip
def test_the_recorded_remark_says_how_late_a_submission_was(
    competition: Path, command: Command, action: str, reason: str, expected: tuple[str, ...]
) -> None:
    at = datetime(2026, 11, 1, 10, tzinfo=UTC)
    if action == "annotate":  # a late one would be no match for an earlier one, which ranks
        recorded("ada", created_at=at)
    run = recorded("ada", created_at=at + timedelta(days=40))
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    ledger.moderate(Moderation(run=run, action=action, actor="late policy", reason=reason, created_at=at))
    row = marks(command)["ada"]
    assert (row["handed_in"], row["late_days"], row["factor"]) == expected


@pytest.mark.parametrize(
    ("actions", "reason", "expected"),
    [
        (["late", "reinstate"], "2 days late, factor 0.8: handed in 2026-12-02 01:30 UTC",
         ("2026-12-02T01:30:00+00:00", "2", "0.8")),
        (["annotate"], "graded after the deadline, but handed in on time, 2026-11-30 20:00 UTC",
         ("2026-11-30T20:00:00+00:00", "0", "1")),
    ],
)  # fmt: skip
def test_a_kernel_that_is_graded_again_keeps_its_moment(
    competition: Path, command: Command, actions: list[str], reason: str, expected: tuple[str, ...]
) -> None:
    at = datetime(2026, 12, 5, 10, tzinfo=UTC)
    run = recorded("ada", created_at=at)
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    for action in actions:
        why = "ill" if action == "reinstate" else reason
        ledger.moderate(Moderation(run=run, action=action, actor="grace", reason=why, created_at=at))
    again = recorded("ada", created_at=at + timedelta(days=1))
    row = marks(command)["ada"]
    assert (row["run"], row["handed_in"], row["late_days"], row["factor"]) == (again, *expected)


RULE = """
[marks]
tests = 10
hidden = 3
speedup = [{ over = 1.0, points = 2 }, { over = 1.5, points = 3.5 }]
"""


def configured(project: Path, rule: str = RULE) -> None:
    with (project / "kernelmark.toml").open("a") as settings:
        settings.write(rule)


def test_points_follow_from_the_rule_of_the_project_or_of_the_problem(competition: Path, command: Command) -> None:
    configured(competition)
    on_cpu = {"device_kind": "cpu", "device_name": "a CPU", "sandbox": "process"}
    recorded("ada", speedups={"eager": 1.4, "compiled": 9.0}, **on_cpu)
    recorded("bob", failed)
    late = recorded("cyd", speedups={"eager": 1.6}, **on_cpu)
    recorded("dan", failed, outcome=Outcome.COMPILE_ERROR)
    recorded("eve", failed, outcome=Outcome.UNSUPPORTED)
    recorded("fay", **on_cpu)
    recorded("gil", speedups={"eager": 9.0}, score_ns=1_000, high_ns=3_000, **on_cpu)
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    why = "2 days late, factor 0.8: handed in 2026-12-02 01:30 UTC+01:00, deadline 2026-11-30 23:59 UTC+01:00"
    ledger.moderate(Moderation(run=late, action="late", actor="x", reason=why, created_at=datetime.now(UTC)))
    found = {author: row["points"] for author, row in marks(command).items()}
    assert found == {"ada": "12", "bob": "5", "cyd": "13.5", "dan": "0", "eve": "", "fay": "10", "gil": "10"}
    assert command("marks", "double", "--feedback", "feedback").code == 0
    expected = "points      13.5 of 15.5 (tests 8 of 10, speedup from 1 × 2 of 2, speedup from 1.5 × 3.5 of 3.5)\n"
    assert expected in (competition / "feedback/cyd.txt").read_text()
    assert "points" not in (competition / "feedback/eve.txt").read_text()

    toml = competition / "problems/double/problem.toml"
    before = load(toml.parent).sha256
    toml.write_text("marks = { tests = 4 }\n" + toml.read_text())
    assert load(toml.parent).sha256 == before, "it is a rule of the course, and no part of the task"
    assert marks(command)["ada"]["points"] == "4"


def test_hidden_tests_count_as_the_rule_says_even_those_that_did_not_run(project: Path) -> None:
    problem = load(project / "problems/double")
    hidden = sum(case.hidden for case in problem.tests)
    right, wrong = accepted().tests[0], failed().tests[1]
    seen = [right] * (len(problem.tests) - hidden)
    unseen = [right.model_copy(update={"hidden": True, "params": {}, "outputs": ()})] * hidden
    base = failed().model_copy(update={"environment": accepted(device_kind="cpu").environment})

    def points(tests: list[CaseResult], left: int = 0, weight: float = 3.0) -> float:
        marking = Marking(MarksRule(tests=12.0, hidden=weight), problem)
        verdict = base.model_copy(update={"tests": tuple(tests), "tests_not_run": left})
        return round(marking.parts(verdict, 1.0)[0].points, 6)

    assert (len(seen), hidden) == (1, 1)
    assert points([*seen, *unseen]) == 12
    assert points([wrong, *unseen]) == 12 * 3 / 4
    assert points(seen, left=1) == 12 * 1 / 4, "the one that did not run is hidden"
    assert points(unseen, left=1) == 12 * 3 / 4, "the one that did not run is visible"
    assert points(seen, left=1, weight=0.0) == 12, "hidden tests count for nothing"
    assert points([], left=2) == 0


@pytest.mark.parametrize(("low", "high", "points"), [(1.9, 2.1, 3.0), (0.01, 316.15, 0.0)], ids=["narrow", "wide"])
def test_a_speedup_that_is_noise_earns_nothing(project: Path, low: float, high: float, points: float) -> None:
    rule = MarksRule(tests=1.0, speedup=(SpeedupPoints(over=1.0, points=3.0),))
    verdict = accepted(speedups={"eager": 2.0}, device_kind="cpu")
    ratio = verdict.speedups[0].ratio.model_copy(update={"low": low, "high": high})
    verdict = verdict.model_copy(update={"speedups": (verdict.speedups[0].model_copy(update={"ratio": ratio}),)})
    assert [part.points for part in Marking(rule, load(project / "problems/double")).parts(verdict, 1.0)[1:]] == [
        points
    ]


def test_a_factor_of_0_leaves_no_points_even_for_the_least_speedup(project: Path) -> None:
    marking = Marking(
        MarksRule(tests=1.0, speedup=(SpeedupPoints(over=0.0, points=3.0),)), load(project / "problems/double")
    )
    verdict = accepted(speedups={"eager": 2.0}, device_kind="cpu")
    assert [part.points for part in marking.parts(verdict, 0.5)] == [0.5, 3.0]
    assert [part.points for part in marking.parts(verdict, 0.0)] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("[marks]\ntest = 3\n", "key `marks.test`: unknown key; did you mean `tests`"),
        ("[marks]\ntests = 'all'\n", "key `marks.tests`"),
        ("[marks]\ntests = 1\nspeedup = [{ from = 1, points = 2 }]\n", "key `marks.speedup.0.from`: unknown key"),
    ],
)
def test_an_invalid_marking_rule_is_named(competition: Path, command: Command, rule: str, expected: str) -> None:
    configured(competition, rule)
    result = command("marks", "double")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert expected in result.err


def test_a_problem_without_a_record_has_no_marks(command: Command) -> None:
    assert marks(command) == {}
    assert command("marks", "nothing").code == 2
