"""`kernelmark regrade` with a real judge on the CPU: what a changed problem makes stale is graded again, once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.entry import EXEMPT
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.pooling import NO_RANK
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
