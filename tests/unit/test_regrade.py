"""What `kernelmark regrade` grades again, and what it leaves out, with a prepared judge."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

import harness.judge
from harness.device.cpu import cpu_name
from harness.judge import Setup
from harness.problem import load
from harness.submission import Submission
from harness.verdict import Environment, Outcome, Timing, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark.project.settings import Settings
from kernelmark.record import recording
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import rank
from tests.documents import items
from tests.unit.conftest import Answering, Command
from tests.verdicts import EPOCH, accepted, failed


def here(**changes: object) -> Environment:
    facts: dict[str, object] = {
        "device_kind": "cpu",
        "device_name": cpu_name(),
        "sandbox": "process",
        "interpreted": False,
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
    }
    return Environment.model_validate(facts | changes)


def source(author: str, text: str = "") -> Submission:
    return Submission.of(f"# {author}'s\n{text}", "py", author=author, name="kernel.py")


def entered(
    author: str,
    score_ns: int,
    problem: str,
    high_ns: int | None = None,
    ranked_timing: Timing | None = None,
    **changes: object,
) -> None:
    """Record a result of this machine, with its source."""
    submission = source(author)
    verdict = accepted(
        submission=submission, problem="double", problem_sha256=problem, protocol=PROTOCOL,
        score_ns=score_ns, high_ns=high_ns, ranked_timing=ranked_timing,
    )  # fmt: skip
    recording.record(Settings.load(), submission, verdict.model_copy(update={"environment": here(**changes)}))


@pytest.fixture
def judged(competition: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A judge of this machine that finds everybody wrong, and remembers whom it graded."""
    seen: list[str] = []

    def grade(setup: Setup) -> Verdict:
        seen.append(setup.submission.author)
        fields = {"problem": "double", "problem_sha256": setup.problem.sha256, "protocol": PROTOCOL}
        return failed(submission=setup.submission, **fields).model_copy(update={"environment": here()})

    monkeypatch.setattr(harness.judge, "grade", grade)
    return seen


def test_regrade_grades_each_authors_best_once(competition: Path, judged: list[str], command: Command) -> None:
    now = load(competition / "problems/double").sha256
    entered("ada", 900, "0" * 64)
    entered("bob", 700, "0" * 64)
    entered("joe", 100, now)
    entered("eve", 100, now, device_name="another machine")
    listed = items(command("regrade", "--dry-run", "--format", "json").out)
    assert [(each["problem"], each["author"]) for each in listed] == [("double", "bob"), ("double", "ada")]
    assert judged == []
    result = command("regrade", "double")
    assert result.code == 0, "that they are wrong now is no failure of regrading"
    assert judged == ["bob", "ada"]
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    graded = [entry.verdict.outcome.value for entry in ledger.read() if entry.kind == VERDICT]
    assert graded == ["accepted"] * 4 + ["wrong_answer"] * 2
    assert "graded again as" in (competition / "leaderboard/BOARD.md").read_text()
    assert command("regrade").out == "nothing needs to be graded again here\n"
    assert judged == ["bob", "ada"]


def test_regrade_lists_wide_results_until_they_rank(judged: list[str], command: Command) -> None:
    entered("ada", 900, _now(), high_ns=1400)
    entered("bob", 700, _now())
    (listed,) = items(command("regrade", "--dry-run", "--format", "json").out)
    assert (listed["author"], listed["reason"]) == ("ada", "interval too wide to rank, 900 ns [896 ns, 1.40 µs]")
    assert command("regrade").code == 0
    assert judged == ["ada"]
    for _ in range(3):
        entered("ada", 900, _now())
    assert items(command("regrade", "--dry-run", "--format", "json").out) == []


def test_results_that_cannot_be_replayed_here_are_not_regraded(judged: list[str], command: Command) -> None:
    entered("ada", 900, _now(), high_ns=1400, ranked_timing="replayed")
    entered("bob", 900, "0" * 64, ranked_timing="replayed")
    assert command("regrade").code == 0
    assert judged == ["bob"], "whose row is out of date"


@pytest.mark.parametrize(
    ("change", "author"),
    [(lambda: entered("ada", 900, _now(), torch="1.0"), ["ada"]), (lambda: entered("ada", 900, _now()), [])],
)
def test_the_installed_software_decides_what_is_stale(
    judged: list[str], command: Command, change: Callable[[], None], author: list[str]
) -> None:
    change()
    assert command("regrade").code == 0
    assert judged == author


def _now() -> str:
    return load(Path("problems/double")).sha256


def test_a_missing_source_does_not_stop_the_others(competition: Path, judged: list[str], command: Command) -> None:
    entered("ada", 900, "0" * 64)
    entered("bob", 700, "0" * 64)
    (source,) = (competition / "leaderboard/archive/double/bob").iterdir()
    source.unlink()
    result = command("regrade")
    assert (result.code, judged) == (7, ["ada"])
    assert "the archived source cannot be read" in result.out


def test_regrading_ignores_deadlines_not_moderation(competition: Path, judged: list[str], command: Command) -> None:
    entered("ada", 900, "0" * 64)
    entered("bob", 700, "0" * 64)
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    bob = list(ledger.read())[-1].verdict.run
    assert command("moderate", "disqualify", bob, "--actor", "grace", "--reason", "why").code == 0
    toml = competition / "problems/double/problem.toml"
    toml.write_text("deadline = 2020-01-01T00:00:00Z\n" + toml.read_text())
    assert command("regrade").code == 0
    assert judged == ["ada"]


def test_late_results_are_regraded_last_and_stay_late(competition: Path, command: Command, judge: Answering) -> None:
    """So the final tests decide about late submissions too, and grading again is no way round the deadline."""
    entered("late", 500, "0" * 64)
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    [first] = ledger.read()
    event = {"actor": "late policy", "reason": "1 day late, factor 0.9", "created_at": first.verdict.created_at}
    ledger.moderate(Moderation(run=first.verdict.run, action="late", **event))
    entered("ada", 900, "0" * 64)
    listed = items(command("regrade", "--dry-run", "--format", "json").out)
    assert [each["author"] for each in listed] == ["ada", "late"]
    fields = {"problem": "double", "problem_sha256": _now(), "protocol": PROTOCOL}
    right = [accepted(submission=source(name), run=run * 16, **fields) for name, run in (("ada", "e"), ("late", "f"))]
    judge(*(verdict.model_copy(update={"environment": here()}) for verdict in right))
    assert command("regrade").code == 0
    newest = rank(ledger)[0]
    assert [row.author for row in newest.rows] == ["ada"]
    [again] = newest.set_aside
    assert (again.author, again.run, again.state, again.moderation[0].reason) == (
        "late",
        "f" * 16,
        "late",
        event["reason"],
    )
    assert command("regrade").out == "nothing needs to be graded again here\n"


OLD = "0" * 64


def flunked(
    author: str, problem: str = OLD, text: str = "", outcome: Outcome = Outcome.WRONG_ANSWER, **changes: object
) -> str:
    """Record a failure on this machine, with its source; returns its run."""
    submission = source(author, text)
    fields = {"problem": "double", "problem_sha256": problem, "protocol": PROTOCOL}
    verdict = failed(outcome, submission=submission, **fields)
    recording.record(Settings.load(), submission, verdict.model_copy(update={"environment": here(**changes)}))
    return verdict.run


def listed(command: Command, *options: str) -> tuple[list[str], str]:
    """Whom a dry run would grade again, and what it leaves out."""
    result = command("regrade", "--dry-run", "--format", "json", *options)
    assert result.code == 0, result.err
    return [item["author"] for item in items(result.out)], result.err


def test_failures_caused_by_fixed_faults_are_regraded_on_request(judged: list[str], command: Command) -> None:
    entered("ada", 900, OLD)
    flunked("ada", text="another")
    flunked("bob")
    flunked("cyd", outcome=Outcome.REJECTED)
    flunked("dan", problem=_now())
    flunked("eve")
    flunked("eve", problem=_now())
    authors, left = listed(command)
    assert authors == ["ada"]
    assert left == "left out: 3 that failed before (--failed); 2 up to date, or not the best of an author (--all)\n"
    authors, left = listed(command, "--failed")
    assert authors == ["ada", "bob", "cyd", "ada"], "due rows, then who has none, then the others"
    assert left == "left out: 2 up to date, or not the best of an author (--all)\n"
    authors, left = listed(command, "--all")
    assert (sorted(authors), left) == (["ada", "ada", "bob", "cyd", "dan", "eve"], "")
    authors, left = listed(command, "--failed", "--author", "bob")
    assert (authors, "1 of others (without --author)" in left) == (["bob"], True)
    assert command("regrade", "--failed").code == 0
    assert judged == ["ada", "bob", "cyd", "ada"]
    assert listed(command, "--failed")[0] == []


def test_one_run_is_graded_again_whatever_it_is(judged: list[str], command: Command) -> None:
    run = flunked("bob", problem=_now())
    assert command("regrade", "--run", run[:12]).code == 0
    assert judged == ["bob"]
    result = command("regrade", "--run", run, "--failed")
    assert (result.code, "--run names what to grade" in result.err) == (2, True)
    assert command("regrade", "--run", "0123456789abcdef").code == 2


def test_a_disqualified_source_gets_no_new_run(judged: list[str], command: Command) -> None:
    run = flunked("bob")
    assert listed(command, "--failed")[0] == ["bob"]
    assert command("moderate", "disqualify", run, "--actor", "grace", "--reason", "why").code == 0
    assert [listed(command, option)[0] for option in ("--failed", "--all")] == [[], []]
    result = command("regrade", "--run", run)
    assert (result.code, "is disqualified" in result.err, judged) == (2, True, [])
    assert command("moderate", "reinstate", run, "--actor", "grace", "--reason", "why").code == 0
    assert listed(command, "--failed")[0] == ["bob"]


def test_a_late_failure_stays_late_when_regraded(competition: Path, judged: list[str], command: Command) -> None:
    run = flunked("bob")
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    late = {"actor": "late policy", "reason": "1 day late", "created_at": EPOCH}
    ledger.moderate(Moderation(run=run, action="late", **late))
    assert command("regrade", "--failed").code == 0
    *_, remark = (entry.moderation for entry in ledger.read() if entry.kind == "moderation")
    assert (judged, remark.action, remark.reason, remark.run != run) == (["bob"], "late", "1 day late", True)


def test_regrade_reports_what_needs_another_machine_or_flag(command: Command) -> None:
    entered("ada", 900, OLD, device_name="another machine")
    entered("bob", 900, OLD, sandbox="bwrap")
    flunked("cyd", device_name="another machine")
    authors, left = listed(command)
    assert authors == []
    assert "1 graded on another device (run it on another machine)" in left
    assert "1 graded with isolation (--sandbox)" in left
    assert "2 graded on another device" in listed(command, "--failed")[1]
