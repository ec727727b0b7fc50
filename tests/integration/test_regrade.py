"""`kernelmark regrade` with a real judge on the CPU: what a changed problem makes stale is graded again, once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.entry import EXEMPT, VERDICT
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.pooling import NO_RANK
from tests.command import kernelmark

ROOT = Path(__file__).resolve().parents[2]


def out_of_date(project: Path) -> list[str]:
    """What would be graded again, but for times that a busy machine left too wide to rank."""
    listed = json.loads(kernelmark(project, "regrade", "--dry-run", "--format", "json").stdout)
    return [each["reason"] for each in listed if not each["reason"].startswith(NO_RANK["too_wide"])]


@pytest.mark.full
def test_a_changed_problem_is_graded_again_once(tmp_path: Path) -> None:
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems/double")
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\neffort = "quick"\nauthor = "ada"\n')
    (tmp_path / "kernel.py").write_text("def twice(x, y):\n    y.copy_(2 * x)\n")
    done = kernelmark(tmp_path, "submit", "double", "kernel.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert out_of_date(tmp_path) == []
    toml = tmp_path / "problems/double/problem.toml"
    toml.write_text("deadline = 2020-01-01T00:00:00Z\n" + toml.read_text().replace("Twice a vector", "Twice"))
    done = kernelmark(tmp_path, "regrade")
    assert done.returncode == 0, done.stdout + done.stderr
    first, exempt, second = JsonlLedger(tmp_path / "leaderboard/results/double.jsonl").read()
    before, after = first.verdict, second.verdict
    assert exempt.kind == EXEMPT, "it does not count towards the author's limits a day"
    assert after.run.encode() in exempt.document
    assert before.problem.sha256 != after.problem.sha256
    assert before.submission == after.submission
    assert out_of_date(tmp_path) == []
    assert f"graded again as {after.run}" in (tmp_path / "leaderboard/boards/double.md").read_text()
    assert kernelmark(tmp_path, "verify").returncode == 0


@pytest.mark.full
def test_who_was_failed_by_a_wrong_problem_gets_a_row_once_it_is_mended(tmp_path: Path) -> None:
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems/double")
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\neffort = "quick"\n')
    for author, factor in (("ada", 2), ("bob", 3)):
        (tmp_path / f"{author}.py").write_text(f"def twice(x, y):\n    y.copy_({factor} * x)\n")
    reference = tmp_path / "problems/double/reference.py"
    right = reference.read_text()
    reference.write_text("def reference(x):\n    return 3 * x\n")
    assert kernelmark(tmp_path, "grade", "double", _handins(tmp_path)).returncode == 1
    ledger = JsonlLedger(tmp_path / "leaderboard/results/double.jsonl")
    assert _outcomes(ledger) == [("ada", "wrong_answer"), ("bob", "accepted")]
    reference.write_text(right)
    done = kernelmark(tmp_path, "regrade", "--dry-run")
    assert (done.stdout.count(" by "), "1 that failed before (--failed)" in done.stderr) == (1, True)
    done = kernelmark(tmp_path, "regrade", "--failed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(_outcomes(ledger)[2:]) == [("ada", "accepted"), ("bob", "wrong_answer")]
    newest, *_ = json.loads(kernelmark(tmp_path, "board", "double", "--format", "json").stdout)
    assert [row["author"] for row in newest["rows"]] == ["ada"]
    assert "that failed before" not in kernelmark(tmp_path, "regrade", "--dry-run").stderr


def _handins(project: Path) -> str:
    (project / "handins").mkdir()
    for author in ("ada", "bob"):
        (project / f"{author}.py").rename(project / f"handins/{author}.py")
    return "handins"


def _outcomes(ledger: JsonlLedger) -> list[tuple[str, str]]:
    verdicts = [entry.verdict for entry in ledger.read() if entry.kind == VERDICT]
    return [(each.submission.author, each.outcome.value) for each in verdicts]
