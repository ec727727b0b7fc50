"""A project of version 0.1.0 is graded again by this version, from its archived sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.verdict import Outcome
from leaderboard.record.entry import EXEMPT, VERDICT
from leaderboard.record.ledger import JsonlLedger
from tests.command import python
from tests.old_project import copied, reduced, standings

DEVICE = standings("twice")[0]["device_name"]
# Rows of other devices are left alone, so the processor is called what it was called then.
AS_THEN = (
    f"import harness.device.cpu as cpu; cpu.cpu_name = lambda: {DEVICE!r}; "
    "from kernelmark.commands.scripts import main; main()"
)


def as_then(project: Path, *arguments: str) -> str:
    return python(project, "-P", "-c", AS_THEN, *arguments).stdout


@pytest.mark.parametrize(
    ("slug", "sandbox", "file"),
    [
        ("twice", "process", "tiled.cpp"),
        pytest.param("kernelbench_1_1_scaled_rows", "bwrap", "model.py", marks=[pytest.mark.bwrap, pytest.mark.full]),
    ],
)
def test_a_row_is_graded_again(slug: str, sandbox: str, file: str, tmp_path: Path) -> None:
    project = copied(tmp_path)
    toml = project / "problems" / slug / "problem.toml"
    toml.write_text(toml.read_text().replace('title = "', 'title = "Again: ', 1))
    ledger = JsonlLedger(project / "leaderboard" / "results" / f"{slug}.jsonl")
    before = [entry.verdict for entry in ledger.read() if entry.kind == VERDICT]
    as_then(project, "regrade", slug, "--sandbox", sandbox)
    *_, exempt, last = ledger.read()
    again = last.verdict
    assert exempt.kind == EXEMPT, "it does not count towards the author's limits a day"
    assert again.outcome is Outcome.ACCEPTED, again.message
    assert again.submission == next(each.submission for each in before if each.submission.name == file)
    assert len([entry for entry in ledger.read() if entry.kind == VERDICT]) == len(before) + 1
    tables = json.loads(as_then(project, "board", slug, "--format", "json"))["items"]
    of_then = [table for table in tables if table["key"]["problem_sha256"] != again.problem.sha256]
    assert reduced(of_then) == standings(slug)
    due = [row for table in of_then for row in table["rows"] if row["submission"] == file and row["sandbox"] == sandbox]
    assert [row["stale"]["again"] for row in due] == [again.run]
    as_then(project, "verify")
