"""What lies in `examples/`, run as its README says, with a real judge on the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kernelmark
from harness.verdict import Outcome
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import REPLAYED, accepted, failed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(directory: Path, *line: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, in bubblewrap on the CPU, with nothing else of a developer's settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELMARK_")}
    environment |= {"KERNELMARK_SANDBOX": "bwrap", "KERNELMARK_DEVICE": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *line], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def command(directory: Path, name: str, *arguments: str) -> str:
    entry = f"from kernelmark.commands.scripts import {name}; {name}()"
    return run(directory, "-c", entry, *arguments).stdout


@pytest.mark.full
@pytest.mark.bwrap
def test_a_copy_of_the_course_has_a_sound_problem_and_a_board(tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(EXAMPLES / "course", course, ignore=shutil.ignore_patterns("leaderboard", "__pycache__"))
    assert command(course, "main", "problems", "lint").startswith("row_sum: passed (3 samples graded)\n")
    example = "submissions/row_sum/example/kernel.py"
    assert command(course, "submit", "row_sum", example, "--quick", "--author", "ada").startswith("accepted\n")
    (entry,) = JsonlLedger(course / "leaderboard/results/row_sum.jsonl").read()
    (table,) = json.loads(command(course, "main", "board", "row_sum", "--format", "json"))
    assert [(row["author"], row["run"]) for row in table["rows"]] == [("ada", entry.verdict.run)]
    assert entry.verdict.run in command(course, "main", "board")
    assert "| ada |" in (course / "leaderboard/BOARD.md").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.bwrap
def test_the_training_loop_moves_towards_what_gradings_prefer() -> None:
    said = run(ROOT, "examples/training/train.py").stdout
    rows = re.findall(r"^(\w+) +reward (\S+) +probability (\S+)$", said, re.MULTILINE)
    rewards = {name: float(reward) for name, reward, _ in rows}
    probabilities = {name: float(probability) for name, _, probability in rows}
    assert rewards.keys() == {"product", "detour", "doubled", "unfinished"}
    assert rewards["doubled"] == rewards["unfinished"] == 0
    assert min(rewards["product"], rewards["detour"]) > 0
    assert probabilities["doubled"] + probabilities["unfinished"] < 0.5, "half of all answers were faulty at first"


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module; it does not wait."""
    spec = importlib.util.spec_from_file_location("train", EXAMPLES / "training/train.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "WAIT_S", 0.0)
    return made


@pytest.mark.parametrize(("failures", "reward"), [(2, 0.0), (3, 0.0), (6, None)])
def test_a_failure_of_the_harness_is_the_answers_unless_the_baseline_fails_too(
    training: ModuleType, monkeypatch: pytest.MonkeyPatch, failures: int, reward: float | None
) -> None:
    answers = [kernelmark.HarnessError("the machine fails")] * failures + [failed(Outcome.WRONG_ANSWER)]

    def grade(*_: object, **__: object) -> kernelmark.Verdict:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(kernelmark, "grade", grade)
    if reward is None:
        with pytest.raises(kernelmark.HarnessError, match="the machine fails"):
            training.reward("kernel")
    else:
        assert training.reward("kernel") == reward
        assert answers == []


def test_an_answer_earns_nothing_that_is_unsupported_or_escapes_the_replays(
    training: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = {
        "unsupported": failed(Outcome.UNSUPPORTED),
        "sealed": accepted(speedups={"eager": 2.0}),
        "replayed": accepted(modes=REPLAYED, speedups={"eager": 2.0}),
    }
    assert {verdict.environment.device_kind for verdict in graded.values()} == {"cuda"}
    monkeypatch.setattr(kernelmark, "grade", lambda _, source, **__: graded[source])
    rewards = {source: training.reward(source) for source in graded}
    assert rewards == {"unsupported": 0, "sealed": 0, "replayed": pytest.approx(2.0)}


def test_an_answer_that_is_too_long_earns_nothing(training: ModuleType) -> None:
    assert training.reward("#" * (1 << 21)) == 0
