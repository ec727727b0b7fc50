"""Grading from Python, and a project as an object, with a judge that gives prepared answers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import kernelmark
from harness import sandbox as sandboxes
from harness.judge import Progress
from harness.sandbox.process import Process
from harness.submission import Submission
from harness.verdict import Stage
from kernelmark import Project
from tests.grading import written
from tests.unit.conftest import PROBLEM, Answering, recorded
from tests.verdicts import REPLAYED, accepted

REPOSITORY = Path(__file__).parents[2]


def test_python_grades_source_paths_and_submissions(judge: Answering, project: Path) -> None:
    fake = judge(*(accepted() for _ in range(4)))
    seen: list[Progress] = []
    source = "void twice(const float* x, float* y) {}\n"
    kernelmark.grade("double", source, author="eve", language="cpp", on_progress=seen.append)
    kernelmark.check(project / "problems/double", Path("kernel.py"))
    verdict = kernelmark.grade("double", Submission.of("x = 1", "py", author="bob"), record=True)
    assert [(asked[1].author, asked[1].language) for asked in fake.asked] == [
        ("eve", "cpp"), ("anonymous", "py"), ("bob", "py"),
    ]  # fmt: skip
    assert {asked[2:] for asked in fake.asked} == {("process", "cpu")}
    assert seen == [Progress(Stage.TEST, 0, 2, "small")]
    assert [v.run for v in recorded(project)] == [verdict.run]
    with pytest.raises(kernelmark.UsageError, match="no such problem"):
        kernelmark.grade("trible", "x\n")
    with pytest.raises(kernelmark.SubmissionError, match="unknown language 'rust'; use 'py', 'cu' or 'cpp'"):
        kernelmark.check("double", "fn main() {}\n", language="rust")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no attribute 'grad'"):
        kernelmark.grad  # noqa: B018


def test_a_str_is_source_and_a_str_that_names_a_file_is_refused_with_a_hint(judge: Answering, project: Path) -> None:
    """A model's answer of one line may name a file of the trainer's: `kernel.py` is one of the project's."""
    sources = ["", "/", "import kernel.py\nx.py", "#" * 5000]
    fake = judge(*(accepted() for _ in [*sources, "a path", "a name"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in [*sources, Path("kernel.py")]:
            kernelmark.grade("double", source)
    with pytest.warns(UserWarning, match=r"pass Path\('kernel.py'\) to grade that file") as warned:
        kernelmark.grade("double", "kernel.py")
    assert warned[0].filename == __file__
    graded = [submission.source for _, submission, *_ in fake.asked if isinstance(submission, Submission)]
    assert graded == [*(each.encode() for each in sources), (project / "kernel.py").read_bytes(), b"kernel.py"]


def test_a_program_is_told_that_nothing_isolated_the_submission(
    judge: Answering, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "choose", lambda *_: Process())
    verdict = accepted(sandbox="process")
    judge(*[verdict] * 4)
    (project / "kernelmark.toml").write_text('device = "cpu"\n')
    for call in (kernelmark.grade, kernelmark.check):
        with pytest.warns(UserWarning, match="not isolated: it ran with the rights of this process") as warned:
            call("double", "x = 1\n")
        assert warned[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call("double", "x = 1\n", sandbox="process")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((5, "py", "ada", ""), "its source is of type int"),
        (("x = '\ud800'", "py", "ada", ""), "is not UTF-8 text"),
        (("x\0", "py", "ada", ""), "holds a NUL character"),
        (("#" * 10**7, "py", "ada", ""), "is larger than"),
        (("x", "py", 5, ""), "its author is of type int"),
        (("x", "py", "a" * 10**6, ""), "is not a valid name"),
        (("x", "py", "ada", Path("x.py")), "its name is of type PosixPath"),
        (("x", ["py"] * 10**6, "ada", ""), "unknown language"),
    ],
)
def test_an_invalid_submission_is_refused_in_one_short_line(arguments: Any, says: str) -> None:
    """A loop that trains a model must tell what the model wrote from a fault of ours."""
    source, language, author, name = arguments
    with pytest.raises(kernelmark.SubmissionError, match=says) as refused:
        Submission.of(source, language, author=author, name=name)
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


def test_an_object_that_is_no_problem_or_submission_is_a_fault_of_the_call(project: Path) -> None:
    for problem, submission, says in (
        ("double", ["kernel.py"], "the submission is of the type list"),
        (None, "x", "the problem is of the type NoneType"),
    ):
        with pytest.raises(kernelmark.UsageError, match=says) as refused:
            kernelmark.grade(problem, submission)  # type: ignore[arg-type]
        assert not isinstance(refused.value, kernelmark.SubmissionError)
    assert Submission.of("x", "py", author="ada", name="\ud800.py").name == "\\ud800.py"


# ---- a project as an object


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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"effort": "fast"}, "effort: 'fast' is not valid"),
        ({"device": "cuda"}, "device cuda needs a GPU"),
        ({"device": "cuda", "language": "cpp"}, r"device cuda: a \.cpp file runs on a CPU"),
    ],
)
def test_errors_name_arguments_and_not_options_of_commands(
    project: Path, given: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelmark.project.choice.cuda_is_here", lambda: False)
    with pytest.raises(kernelmark.UsageError, match=f"^{says}") as raised:
        kernelmark.grade("double", "x\n", project=Project("."), **given)
    assert "--" not in str(raised.value)


def test_the_first_baseline_of_the_project_is_the_one_to_be_faster_than(project: Path, other: Path) -> None:
    verdict = accepted(modes=REPLAYED, speedups={"eager": 1.0, "fast": 2.0})
    assert kernelmark.reward(verdict) == 3
    assert kernelmark.reward(verdict, project=Project(other)) == 4
    assert kernelmark.reward(verdict, "eager", project=Project(other)) == 3
    assert kernelmark.reward(verdict, project=Project(project)) == 3
