"""What is out of date, what the board says of it, and what `regrade` does about it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import harness.judge
from harness.device.cpu import cpu_name
from harness.problem import load
from harness.submission import Submission
from harness.verdict import Environment, ProblemId, Timing, Verdict
from harness.wire import PROTOCOL
from kernelmark.services import recording
from kernelmark.services.settings import Settings
from leaderboard.publishing.markdown import board
from leaderboard.record.current import Current
from leaderboard.record.entry import VERDICT, Entry, encode
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import rank
from leaderboard.standings.staleness import stale
from tests.unit.conftest import Command, Judge
from tests.verdicts import EPOCH, accepted, environment, failed, sha256

NOW = Current(problems={"softmax": sha256("softmax 1")}, protocol=1)
ID = ProblemId(slug="softmax", sha256=sha256("softmax 1"))
H200 = environment()


@pytest.mark.parametrize(
    ("problem", "protocol", "current", "reason"),
    [
        (ID, 1, NOW, None),
        (ID.model_copy(update={"sha256": "a" * 64}), 1, NOW, "the problem changed, aaaaaaaaaaaa is now "),
        (ID.model_copy(update={"slug": "gone"}), 1, NOW, None),
        (ID, 0, NOW, "protocol 0, now 1"),
        (ID, 1, NOW.model_copy(update={"environments": (H200,)}), None),
        (ID, 1, NOW.model_copy(update={"environments": (H200.model_copy(update={"torch": "2.13.0"}),)}),
         "torch 2.11.0, now 2.13.0"),
        (ID, 1, NOW.model_copy(update={"environments": (H200.model_copy(update={"driver": None}),)}),
         "driver 580.65, now unknown"),
        (ID, 1, NOW.model_copy(update={"environments": (environment(device_name="NVIDIA L4"),)}), None),
        (ID, 1, NOW.model_copy(update={"environments": (environment(sandbox="bwrap"),)}), None),
    ],
)  # fmt: skip
def test_what_makes_a_result_stale(problem: ProblemId, protocol: int, current: Current, reason: str | None) -> None:
    found = stale(problem, protocol, H200, current)
    assert found == reason if reason is None else (found or "").startswith(reason)


def chained(*verdicts: Verdict) -> list[Entry]:
    entries: list[Entry] = []
    for verdict in verdicts:
        entries.append(encode(entries[-1] if entries else None, verdict.to_json().encode())[0])
    return entries


def marks(*verdicts: Verdict, current: Current = NOW) -> dict[str, tuple[str, str | None]]:
    tables = rank(chained(*verdicts), current)
    return {row.run[0]: (row.stale.reason, row.stale.again) for t in tables for row in t.rows if row.stale}


def newer(verdict: Verdict, **changes: object) -> Verdict:
    ran = verdict.environment.model_copy(update=changes)
    return verdict.model_copy(update={"environment": ran, "created_at": EPOCH + timedelta(hours=1)})


OLD = accepted(run="a" * 16, problem_version="0", score_ns=1000)


def test_a_row_is_marked_until_its_file_is_graded_again() -> None:
    reason = f"the problem changed, {sha256('softmax 0')[:12]} is now {sha256('softmax 1')[:12]}"
    assert marks(OLD) == {"a": (reason, None)}
    other_file = accepted(run="b" * 16, source="another")
    other_author = accepted(run="c" * 16, author="bob", source="# ada")
    other_device = accepted(run="d" * 16, device_name="NVIDIA L4")
    assert marks(OLD, other_file, other_author, other_device) == {"a": (reason, None)}
    assert marks(OLD, accepted(run="e" * 16)) == {"a": (reason, "e" * 16)}
    assert marks(OLD, failed(run="f" * 16)) == {"a": (reason, "f" * 16)}, "what it says now does not matter"


def test_the_newest_grading_tells_what_runs_on_a_device() -> None:
    slow = newer(accepted(run="b" * 16, score_ns=9000, author="bob"), driver="600.1")
    fast = accepted(run="a" * 16, score_ns=1000)
    assert marks(fast, slow) == {"a": ("driver 580.65, now 600.1", None)}
    again = newer(accepted(run="c" * 16, score_ns=2000), driver="600.1")
    assert marks(fast, slow, again) == {}, "the row rests on what is there now"
    (row,) = (row for row in rank(chained(fast, slow, again), NOW)[0].rows if row.author == "ada")
    assert (row.run, row.score, row.gradings) == ("c" * 16, again.score, 1)


def test_marks_change_no_rank_and_without_a_present_there_are_none() -> None:
    entries = chained(OLD, accepted(run="b" * 16, problem_version="0", author="bob", score_ns=500))
    marked, plain = rank(entries, NOW), rank(entries)
    assert [row.rank for row in marked[0].rows] == [row.rank for row in plain[0].rows] == [1, 2]
    assert all(row.stale is None for row in plain[0].rows)
    assert board(marked).count("stale: the problem changed") == 2
    assert "stale" not in board(plain)


def here(**changes: object) -> Environment:
    told: dict[str, object] = {
        "device_kind": "cpu",
        "device_name": cpu_name(),
        "sandbox": "process",
        "interpreted": False,
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
    }
    return Environment.model_validate(told | changes)


def entered(
    author: str,
    score_ns: int,
    problem: str,
    high_ns: int | None = None,
    ranked_timing: Timing | None = None,
    **changes: object,
) -> None:
    """Record a result of this machine, with its source."""
    submission = Submission.of(f"# {author}'s\n", "py", author=author, name="kernel.py")
    verdict = accepted(
        author=author,
        problem="double",
        score_ns=score_ns,
        high_ns=high_ns,
        protocol=PROTOCOL,
        ranked_timing=ranked_timing,
    )
    told = verdict.submission.model_copy(update={"sha256": submission.sha256})
    identity = verdict.problem.model_copy(update={"sha256": problem})
    update = {"submission": told, "problem": identity, "environment": here(**changes)}
    recording.record(Settings.load(), submission, verdict.model_copy(update=update))


@pytest.fixture
def judged(competition: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A judge of this machine that finds everybody wrong, and remembers whom it graded."""
    seen: list[str] = []

    def grade(problem: Any, submission: Submission, **_: object) -> Verdict:
        seen.append(submission.author)
        verdict = failed(author=submission.author, problem="double")
        told = verdict.submission.model_copy(update={"sha256": submission.sha256})
        identity = ProblemId(slug="double", sha256=problem.sha256)
        update = {"submission": told, "problem": identity, "environment": here(), "protocol": PROTOCOL}
        return verdict.model_copy(update=update)

    monkeypatch.setattr(harness.judge, "grade", grade)
    return seen


def test_regrade_runs_each_authors_best_first_and_then_has_nothing_to_do(
    competition: Path, judged: list[str], command: Command
) -> None:
    now = load(competition / "problems/double").sha256
    entered("ada", 900, "0" * 64)
    entered("bob", 700, "0" * 64)
    entered("joe", 100, now)
    entered("eve", 100, now, device_name="another machine")
    listed = json.loads(command("regrade", "--dry-run", "--format", "json").out)
    assert [(each["problem"], each["author"]) for each in listed] == [("double", "bob"), ("double", "ada")]
    assert judged == []
    said = command("regrade", "double")
    assert said.code == 0, "that they are wrong now is no failure of regrading"
    assert judged == ["bob", "ada"]
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    graded = [entry.verdict.outcome.value for entry in ledger.read() if entry.kind == VERDICT]
    assert graded == ["accepted"] * 4 + ["wrong_answer"] * 2
    assert "graded again as" in (competition / "leaderboard/BOARD.md").read_text()
    assert command("regrade").out == "nothing needs to be graded again here\n"
    assert judged == ["bob", "ada"]


def test_regrade_names_what_is_too_wide_to_rank_until_it_is_known(
    competition: Path, judged: list[str], command: Command
) -> None:
    entered("ada", 900, _now(), high_ns=1400)
    entered("bob", 700, _now())
    (listed,) = json.loads(command("regrade", "--dry-run", "--format", "json").out)
    assert (listed["author"], listed["reason"]) == ("ada", "interval too wide to rank, 900 ns [896 ns, 1.40 µs]")
    assert command("regrade").code == 0
    assert judged == ["ada"]
    for _ in range(3):
        entered("ada", 900, _now())
    assert json.loads(command("regrade", "--dry-run", "--format", "json").out) == []


def test_what_was_not_replayed_is_not_graded_again_in_vain(
    competition: Path, judged: list[str], command: Command
) -> None:
    entered("ada", 900, _now(), high_ns=1400, ranked_timing="replayed")
    entered("bob", 900, "0" * 64, ranked_timing="replayed")
    assert command("regrade").code == 0
    assert judged == ["bob"], "whose row is out of date"


@pytest.mark.parametrize(
    ("change", "author"),
    [
        (lambda: entered("ada", 900, _now(), torch="1.0"), ["ada"]),
        (lambda: entered("ada", 900, _now()), []),
    ],
)
def test_what_is_installed_here_counts_before_anything_was_graded_with_it(
    competition: Path, judged: list[str], command: Command, change: Callable[[], None], author: list[str]
) -> None:
    change()
    assert command("regrade").code == 0
    assert judged == author


def _now() -> str:
    return load(Path("problems/double")).sha256


def test_a_source_that_is_gone_is_told_and_the_others_are_graded(
    competition: Path, judged: list[str], command: Command
) -> None:
    entered("ada", 900, "0" * 64)
    entered("bob", 700, "0" * 64)
    (source,) = (competition / "leaderboard/archive/double/bob").iterdir()
    source.unlink()
    said = command("regrade")
    assert (said.code, judged) == (7, ["ada"])
    assert "the archived source cannot be read" in said.out


def test_a_deadline_does_not_close_it_and_a_disqualified_run_stays_out(
    competition: Path, judged: list[str], command: Command
) -> None:
    entered("ada", 900, "0" * 64)
    entered("bob", 700, "0" * 64)
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    bob = list(ledger.read())[-1].verdict.run
    assert command("moderate", "disqualify", bob, "--actor", "grace", "--reason", "why").code == 0
    toml = competition / "problems/double/problem.toml"
    toml.write_text("deadline = 2020-01-01T00:00:00Z\n" + toml.read_text())
    assert command("regrade").code == 0
    assert judged == ["ada"]


def test_what_was_late_is_graded_again_last_and_stays_late(
    competition: Path, judged: list[str], command: Command, judge: Callable[..., Judge]
) -> None:
    """So the final tests decide about late submissions too, and grading again is no way round the deadline."""
    entered("late", 500, "0" * 64)
    ledger = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    [first] = ledger.read()
    said = {"actor": "late policy", "reason": "1 day late, factor 0.9", "created_at": first.verdict.created_at}
    ledger.moderate(Moderation(run=first.verdict.run, action="late", **said))
    entered("ada", 900, "0" * 64)
    listed = json.loads(command("regrade", "--dry-run", "--format", "json").out)
    assert [each["author"] for each in listed] == ["ada", "late"]
    right = [accepted(author=name, problem="double", protocol=PROTOCOL) for name in ("ada", "late")]
    sources = [each.submission for each in (entry.verdict for entry in ledger.read() if entry.kind == "verdict")]
    judge(*(
        verdict.model_copy(
            update={
                "problem": ProblemId(slug="double", sha256=_now()),
                "environment": here(),
                "submission": next(each for each in sources if each.author == verdict.submission.author),
                "run": number * 16,
            }
        )
        for number, verdict in zip("ef", right, strict=True)
    ))  # fmt: skip
    assert command("regrade").code == 0
    newest = rank(ledger.read())[0]
    assert [row.author for row in newest.rows] == ["ada"]
    [again] = newest.set_aside
    assert (again.author, again.run, again.state, again.moderation[0].reason) == (
        "late",
        "f" * 16,
        "late",
        said["reason"],
    )
    assert command("regrade").out == "nothing needs to be graded again here\n"
