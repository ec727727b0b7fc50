"""`kernelmark grade --changed` from a pull request to the board, with a real judge on the CPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rank
from tests.command import kernelmark
from tests.repository import commit, git, init

ROOT = Path(__file__).resolve().parents[2]
RIGHT = "def twice(x, y):\n    y.copy_(2 * x)\n"
ALSO_RIGHT = "import torch\n\n\ndef twice(x, y):\n    torch.add(x, x, out=y)\n"
WRONG = "def twice(x, y):\n    y.copy_(3 * x)\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A competition with the problem `double`, and one file of ada's on the board already."""
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems/double")
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\neffort = "quick"\n')
    init(tmp_path)
    return tmp_path


def grade(repository: Path, base: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    files = ("--summary", "summary.md", "--junit", "junit.xml")
    return kernelmark(repository, "grade", "--changed", base, *files, *arguments)


@pytest.mark.full
def test_a_pull_request_and_then_one_with_two_submissions_are_graded(repository: Path) -> None:
    ledger = JsonlLedger(repository / "leaderboard/results/double.jsonl")

    git(repository, "checkout", "-qb", "right")
    commit(repository, {"submissions/double/ada/kernel.py": RIGHT})
    done = grade(repository, "main")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [entry.verdict.outcome.value for entry in ledger.read()] == ["accepted"]
    assert "| ada |" in (repository / "leaderboard/BOARD.md").read_text()
    commit(repository, message="record")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "right")

    git(repository, "checkout", "-qb", "two")
    commit(repository, {"submissions/double/eve/kernel.py": WRONG, "submissions/double/joe/mine.py": ALSO_RIGHT})
    done = grade(repository, "main")
    assert done.returncode == 1, done.stdout + done.stderr
    assert {
        entry.verdict.submission.author: entry.verdict.outcome.value for entry in ledger.read()
    } == {"ada": "accepted", "eve": "wrong_answer", "joe": "accepted"}  # fmt: skip
    (table,) = rank(ledger)
    assert sorted(row.author for row in table.rows) == ["ada", "joe"]
    suites = ElementTree.parse(repository / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("2", "1", "0")


@pytest.mark.full
@pytest.mark.bwrap
def test_two_at_a_time_are_graded_as_they_would_be_one_after_the_other(repository: Path) -> None:
    sources = {"ada": RIGHT, "bob": WRONG, "eve": RIGHT, "joe": "import os\n\nos._exit(3)\n"}
    commit(repository, {f"submissions/double/{author}/kernel.py": source for author, source in sources.items()})
    done = grade(repository, "HEAD~", "--jobs", "2", "--sandbox", "bwrap")
    assert done.returncode == 4, done.stdout + done.stderr
    paths = [line for line in done.stdout.splitlines() if line.startswith("submissions/")]
    assert paths == [f"submissions/double/{author}/kernel.py" for author in sources]
    assert "build" not in done.stderr, "a fleet's workers show no steps of one grading"
    progress = [line.partition(" ")[0] for line in done.stderr.splitlines() if re.match(r"\d+/\d+ ", line)]
    assert progress == ["1/4", "2/4", "3/4", "4/4"]
    ledger = JsonlLedger(repository / "leaderboard/results/double.jsonl")
    verdicts = {entry.verdict.submission.author: entry.verdict for entry in ledger.read()}
    assert {author: verdict.outcome.value for author, verdict in verdicts.items()} == {
        "ada": "accepted", "bob": "wrong_answer", "eve": "accepted", "joe": "runtime_error",
    }  # fmt: skip
    assert {verdict.environment.sandbox for verdict in verdicts.values()} == {"bwrap"}
    assert len({verdict.run for verdict in verdicts.values()}) == 4, "the same source is graded for each author"
    (table,) = rank(ledger)
    assert sorted(row.author for row in table.rows) == ["ada", "eve"]
