"""A project as an object, with a judge that gives prepared answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelmark
from kernelmark import Project
from tests.grading import written
from tests.unit.conftest import PROBLEM, Answering
from tests.verdicts import REPLAYED, accepted


@pytest.fixture
def other(project: Path) -> Path:
    """Another project, inside `project`, which is the working directory; its folders have other names."""
    root = project / "other"
    written(root / "tasks/double", PROBLEM.replace('"Double"', '"Another"'), "def reference(x):\n    return 2 * x\n")
    names = 'problems = "tasks"\nresults = "record"\narchive = "sources"\nboard = "BOARD.md"\n'
    (root / "kernelmark.toml").write_text(f'{names}device = "cpu"\nsandbox = "process"\nbaselines = ["fast"]\n')
    (root / "reference/double").mkdir(parents=True)
    (root / "reference/double/fast.py").write_text("def twice(x, y): y.copy_(x + x)\n")
    return root


def test_a_project_knows_its_own_things(project: Path, other: Path) -> None:
    own = Project(other)
    assert (own.root, own.settings.problems, own.problems()) == (other, Path("tasks"), ["double"])
    assert own.locate("results") == other / "record"
    assert own.problem("double").title == "Another"
    assert Project.around(other / "tasks").root == other
    assert Project.around().root == project
    assert Project.around().problems() == ["closed", "double"]


def test_only_the_given_project_is_graded_for(judge: Answering, project: Path, other: Path) -> None:
    given = Project("other")
    fake = judge(accepted(), accepted(), accepted())
    verdict = kernelmark.grade("double", "x = 1\n", record=True, project=given)
    kernelmark.check("double", "x = 2\n", project=given)
    assert not (project / "leaderboard").exists()
    assert [recorded.run for recorded in given.verdicts("double")] == [verdict.run]
    assert (other / "BOARD.md").is_file()
    assert list((other / "sources").rglob("*.py"))
    assert list(given.verdicts("unheard-of")) == []
    kernelmark.grade("double", "x = 3\n", record=True)
    assert [asked[0] for asked in fake.asked] == ["double"] * 3
    assert (project / "leaderboard/results/double.jsonl").is_file()
    with pytest.raises(kernelmark.UsageError, match="closed: no such problem"):
        kernelmark.check("closed", "x = 2\n", project=given)


def test_a_bare_slug_is_no_folder_here(project: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "problems")
    assert Project(other).problem("double").title == "Another"
    assert Project(other).problem("./double").title == "Double"


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("problems", r"problems is not the root of a project: its kernelmark\.toml is in .*; give that folder"),
        ("../nowhere", r"nowhere is not in a project"),
    ],
)
def test_what_is_no_project_is_refused(project: Path, folder: str, says: str) -> None:
    with pytest.raises(kernelmark.UsageError, match=says):
        Project(folder)


def test_a_wrong_setting_is_refused_when_it_is_given(project: Path) -> None:
    with pytest.raises(kernelmark.SettingsError, match="--effort: 'fast' is not valid"):
        kernelmark.grade("double", "x\n", effort="fast", project=Project("."))  # type: ignore[arg-type]


def test_the_first_baseline_of_the_project_is_the_one_to_be_faster_than(project: Path, other: Path) -> None:
    verdict = accepted(modes=REPLAYED, speedups={"eager": 1.0, "fast": 2.0})
    assert kernelmark.reward(verdict) == 3
    assert kernelmark.reward(verdict, project=Project(other)) == 4
    assert kernelmark.reward(verdict, "eager", project=Project(other)) == 3
    assert kernelmark.reward(verdict, project=Project(project)) == 3
