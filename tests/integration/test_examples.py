"""What lies in `examples/`, run as its README says, with a real judge on the CPU."""

from __future__ import annotations

import csv
import importlib.util
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kernelmark
from harness.verdict import Outcome
from leaderboard.record.ledger import JsonlLedger
from tests.command import python
from tests.documents import items
from tests.prepared_fleet import PreparedFleet
from tests.verdicts import REPLAYED, accepted, failed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BROKEN = kernelmark.HarnessError("the machine fails")
WRONG = failed(Outcome.WRONG_ANSWER)


def run(directory: Path, *line: str, status: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, in bubblewrap on the CPU."""
    return python(directory, *line, status=status, KERNELMARK_SANDBOX="bwrap", KERNELMARK_DEVICE="cpu", **settings)


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
    assert command(course, "submit", "row_sum", example, "--quick", "--author", "ada").startswith("accepted: ")
    (entry,) = JsonlLedger(course / "leaderboard/results/row_sum.jsonl").read()
    (table,) = items(command(course, "main", "board", "row_sum", "--format", "json"))
    assert [(row["author"], row["run"]) for row in table["rows"]] == [("ada", entry.verdict.run)]
    assert entry.verdict.run in command(course, "main", "board")
    assert "| ada |" in (course / "leaderboard/BOARD.md").read_text(encoding="utf-8")


OVERFITTED = "def row_sum(x, y):\n    y.copy_(x[:, :8192].sum(1))\n"


@pytest.mark.full
@pytest.mark.bwrap
def test_the_course_is_closed_and_its_final_test_decides(tmp_path: Path) -> None:
    """As the README says, with the tests and moments that it gives, but for a deadline that has passed."""
    course, private, handins = (tmp_path / name for name in ("course", "private", "handins"))
    shutil.copytree(EXAMPLES / "course", course, ignore=shutil.ignore_patterns("leaderboard", "__pycache__"))
    readme = (course / "README.md").read_text(encoding="utf-8")
    moments, final = (
        textwrap.dedent(
            next(block for block in re.findall(r"(?:^ {4}.*\n|^\n)+", readme, re.MULTILINE) if word in block)
        )
        for word in ("author,handed_in", "salt = ")
    )
    private.mkdir(mode=0o700)
    (private / "row_sum.final.toml").write_text(final)
    toml = course / "problems/row_sum/problem.toml"
    assert toml.read_text().count("2099-") == 1
    toml.write_text(toml.read_text().replace("2099-", "2019-"))
    (course / "moments.csv").write_text(moments.replace("2099-", "2019-").strip() + "\n")
    for author, source in (("Ada Lovelace", OVERFITTED), ("Bob", OVERFITTED.replace(":8192", ":"))):
        (handins / author).mkdir(parents=True)
        (handins / author / "kernel.py").write_text(source)
    entry = "from kernelmark.commands.scripts import main; main()"
    arguments = ("--handed-in", "moments.csv", "--csv", "marks.csv", "--feedback", "feedback/")
    run(
        course, "-c", entry, "grade", "row_sum", str(handins), *arguments,
        status=1, KERNELMARK_PRIVATE_CASES=str(private), KERNELMARK_EFFORT="quick",
    )  # fmt: skip
    with (course / "marks.csv").open(newline="", encoding="utf-8-sig") as file:
        marks = {row["author"]: row for row in csv.DictReader(file)}
    assert {name: (row["outcome"], row["tests_right"], row["factor"]) for name, row in marks.items()} == {
        "Ada-Lovelace": ("wrong answer", "5", "1"),
        "Bob": ("accepted", "6", "0.8"),
    }
    assert "very long rows" not in (course / "feedback/Ada-Lovelace.txt").read_text()
    assert "2 days late, factor 0.8" in (course / "feedback/Bob.txt").read_text()
    assert "private" not in command(course, "main", "problems", "show", "row_sum"), "without the folder"


@pytest.mark.full
@pytest.mark.bwrap
def test_the_training_loop_moves_towards_what_gradings_prefer() -> None:
    result = run(ROOT, "examples/training/train.py").stdout
    rows = re.findall(r"^(\w+) +reward (\S+) +probability (\S+)$", result, re.MULTILINE)
    rewards = {name: float(reward) for name, reward, _ in rows}
    probabilities = {name: float(probability) for name, _, probability in rows}
    assert rewards.keys() == {"product", "detour", "first_block", "doubled", "unfinished"}
    assert rewards["doubled"] == rewards["unfinished"] == 0 < rewards["first_block"] < 1
    assert min(rewards["product"], rewards["detour"]) >= 1
    assert probabilities["product"] + probabilities["detour"] > 0.7, "two fifths at first"


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A file of an example as a module; it does not wait."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, EXAMPLES / name)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "WAIT_S", 0.0)
    return made


class Fleet(PreparedFleet):
    def grade_many(self, jobs: Iterable[kernelmark.Job], **how: Any) -> Iterator[kernelmark.JobResult]:
        assert how == {"effort": "screen", "baselines": ["eager"]}
        return map(self.result, jobs)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.chdir(ROOT)
    return example("training/train.py", monkeypatch)


def test_each_answer_of_a_group_earns_what_its_verdict_is_worth(training: ModuleType) -> None:
    fast = accepted(modes=REPLAYED, speedups={"compiled": 1.0, "eager": 2.0})
    plain = accepted(speedups={"eager": 2.0}, ranked_timing="replayed")
    long = kernelmark.SubmissionError("source", "is larger than 1,048,576 bytes")
    fleet = Fleet({"fast": [fast], "plain": [plain], "wrong": [WRONG], "long": [long]})
    earned = training.rewards(fleet, ["fast", "plain", "wrong", "long"])
    assert earned == {"fast": 4, "plain": 1, "wrong": kernelmark.reward(WRONG), "long": 0}
    assert sorted(fleet.graded) == ["fast", "long", "plain", "wrong"]


@pytest.mark.parametrize(("failures", "earns"), [(1, True), (2, True), (3, False)])
def test_a_failure_of_the_harness_is_the_answers_unless_it_fails_again_and_again(
    training: ModuleType, failures: int, earns: bool
) -> None:
    fleet = Fleet({"flaky": [*[BROKEN] * failures, WRONG], "well": [WRONG], training.KNOWN: [accepted()]})
    worth = kernelmark.reward(WRONG)
    assert training.rewards(fleet, ["flaky", "well"]) == {"flaky": worth if earns else 0, "well": worth}
    assert fleet.graded.count("well") == 1, "only what failed is graded again"
    assert (training.KNOWN in fleet.graded) is not earns


def test_training_stops_where_not_even_the_baseline_can_be_graded(training: ModuleType) -> None:
    fleet = Fleet({"kernel": [BROKEN], training.KNOWN: [BROKEN]})
    with pytest.raises(kernelmark.HarnessError, match="the machine fails"):
        training.rewards(fleet, ["kernel"])
    fleet = Fleet({"kernel": [kernelmark.UsageError("problem square", "has no case for cpu")]})
    with pytest.raises(kernelmark.UsageError, match="no case for cpu"):
        training.rewards(fleet, ["kernel"])
