"""A class whose grading is killed keeps its marks, and goes on where it was, with a real judge on the CPU."""

from __future__ import annotations

import csv
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger
from tests.command import KERNELMARK, environment, kernelmark

GRADE = ("grade", "double", "handins", "--csv", "marks.csv", "--feedback", "feedback", "--jobs", "1")
AUTHORS = ["ada", "bob", "cyd"]


def marks(project: Path, column: str = "outcome", name: str = "marks.csv") -> dict[str, str]:
    if not (project / name).exists():
        return {}
    with (project / name).open(newline="", encoding="utf-8-sig") as file:
        return {row["author"]: row[column] for row in csv.DictReader(file)}


@pytest.mark.full
def test_marks_outlive_a_kill_and_nothing_is_graded_twice(tmp_path: Path) -> None:
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems/double")
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\neffort = "quick"\n')
    (tmp_path / "handins").mkdir()
    waits = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go_on')!r}):\n    time.sleep(0.01)\n"
    for author, before, factor in zip(AUTHORS, ("", waits, ""), (2, 3, 2), strict=True):
        (tmp_path / f"handins/{author}.py").write_text(f"{before}def twice(x, y):\n    y.copy_({factor} * x)\n")
    running = subprocess.Popen(
        [*KERNELMARK, *GRADE],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 600
        while "accepted" not in marks(tmp_path).values():
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        running.kill()
        running.wait()
    (tmp_path / "go_on").touch()  # bob's kernel is not graded before
    before = marks(tmp_path)
    assert (before["ada"], list(before)) == ("accepted", AUTHORS), "a whole table, not the beginning of one"
    assert before["cyd"] != "accepted", "it was killed in the middle"
    ledger = JsonlLedger(tmp_path / "leaderboard/results/double.jsonl")
    kept = [entry.verdict.run for entry in ledger.read() if entry.kind == VERDICT]
    done = kernelmark(tmp_path, *GRADE, "--resume")
    assert done.returncode == 1, done.stdout + done.stderr
    assert marks(tmp_path) == {"ada": "accepted", "bob": "wrong answer", "cyd": "accepted"}
    verdicts = [entry.verdict for entry in ledger.read() if entry.kind == VERDICT]
    assert sorted(verdict.submission.author for verdict in verdicts) == AUTHORS
    assert [verdict.run for verdict in verdicts][: len(kept)] == kept
    for author in AUTHORS:
        assert marks(tmp_path)[author] in (tmp_path / f"feedback/{author}.txt").read_text()
    assert kernelmark(tmp_path, "marks", "double", "--csv", "again.csv").returncode == 0
    assert marks(tmp_path, "run", "again.csv") == marks(tmp_path, "run")
