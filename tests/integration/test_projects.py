"""Two projects in one process, which works in a third: each has its settings, its problems and its record."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.verdict import Outcome
from kernelmark import Fleet, Job, Project, Verdict, check, grade
from kernelmark.diagnostics.selftest import PROBLEMS

TWICE = "import torch\ndef twice(x, y): torch.mul(x, 2, out=y)\n"
THRICE = TWICE.replace("x, 2", "x, 3")
PLACES = 'problems = "tasks"\nresults = "record/results"\narchive = "record/sources"\nboard = "record/BOARD.md"\n'


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Project, Project]:
    """Two with a problem of the same name: in the second, what is right in the first is wrong. The working directory is
    a third project's folder of problems, one of which has that name, too.
    """
    one, two, third = (tmp_path / name for name in ("one", "two", "third"))
    for folder in (one / "problems", two / "tasks", third / "problems"):
        shutil.copytree(PROBLEMS / "double", folder / "double")
    reference = two / "tasks/double/reference.py"
    assert "2" in reference.read_text()
    reference.write_text(reference.read_text().replace("2", "3"))
    (one / "kernelmark.toml").write_text('device = "cpu"\neffort = "quick"\n')
    (two / "kernelmark.toml").write_text(f'{PLACES}device = "cpu"\neffort = "quick"\ntitle = "Threes"\n')
    (third / "kernelmark.toml").write_text('device = "cuda"\n')
    monkeypatch.chdir(third / "problems")
    return Project(one), Project(two)


def recorded(project: Project) -> dict[str, Outcome]:
    """The outcome that each author has."""
    return {verdict.submission.author: verdict.outcome for verdict in project.verdicts("double")}


def expect_records(projects: tuple[Project, Project]) -> None:
    one, two = projects
    assert recorded(one) == {"twice": Outcome.ACCEPTED, "thrice": Outcome.WRONG_ANSWER}
    assert recorded(two) == {"twice": Outcome.WRONG_ANSWER, "thrice": Outcome.ACCEPTED}
    boards = [(one.root / "leaderboard/BOARD.md").read_text(), (two.root / "record/BOARD.md").read_text()]
    assert ["| twice |" in board for board in boards] == [True, False]
    assert ["| thrice |" in board for board in boards] == [False, True]
    assert ["Threes" in board for board in boards] == [False, True]
    own = sorted(path.name for path in two.root.iterdir())
    assert own == [".kernelmark", "kernelmark.toml", "record", "tasks"]
    assert sorted(path.name for path in Path("..").iterdir()) == ["kernelmark.toml", "problems"], "the third"


@pytest.mark.full
def test_each_is_recorded_in_its_own_ledger_one_after_the_other_and_in_threads(
    projects: tuple[Project, Project],
) -> None:
    one, two = projects

    def graded(project: Project, author: str, source: str) -> Verdict:
        return grade("double", source, author=author, sandbox="process", record=True, project=project)

    assert graded(one, "twice", TWICE).outcome is Outcome.ACCEPTED
    assert check("double", TWICE, sandbox="process", project=two).outcome is Outcome.WRONG_ANSWER
    with ThreadPoolExecutor(3) as threads:
        rest = [(one, "thrice", THRICE), (two, "twice", TWICE), (two, "thrice", THRICE)]
        list(threads.map(lambda job: graded(*job), rest))
    expect_records(projects)


@pytest.mark.full
@pytest.mark.bwrap
@pytest.mark.alone
def test_two_fleets_at_a_time_are_each_for_their_own_project(projects: tuple[Project, Project]) -> None:
    def graded(project: Project) -> list[str]:
        sources = {"twice": TWICE, "thrice": THRICE}
        jobs = [Job(problem="double", submission=source, author=author) for author, source in sources.items()]
        with Fleet(sandbox="bwrap", project=project) as fleet:
            results = list(fleet.grade_many(jobs, record=True))
        return [str(result.error) for result in results if result.error is not None]

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(graded, projects)) == [[], []]
    expect_records(projects)
