"""Grading from Python, with a judge that gives prepared answers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import kernelmark
from harness.judge import Progress
from harness.submission import Submission
from harness.verdict import Stage
from tests.unit.conftest import Answering, recorded
from tests.verdicts import accepted

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


def test_a_str_is_source_whatever_it_says_and_who_names_a_file_is_told(judge: Answering, project: Path) -> None:
    """A model's answer of one line may name a file of the trainer's: `kernel.py` is one of the project's."""
    sources = ["", "/", "import kernel.py\nx.py", "#" * 5000]
    fake = judge(*(accepted() for _ in [*sources, "a path", "a name"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in [*sources, Path("kernel.py")]:
            kernelmark.grade("double", source)
    with pytest.warns(UserWarning, match=r"pass Path\('kernel.py'\) to grade that file") as told:
        kernelmark.grade("double", "kernel.py")
    assert told[0].filename == __file__
    graded = [submission.source for _, submission, *_ in fake.asked if isinstance(submission, Submission)]
    assert graded == [*(each.encode() for each in sources), (project / "kernel.py").read_bytes(), b"kernel.py"]


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
def test_whatever_a_submission_is_made_of_it_is_refused_in_one_short_line(arguments: Any, says: str) -> None:
    """A loop that trains a model must tell what the model wrote from a fault of ours."""
    source, language, author, name = arguments
    with pytest.raises(kernelmark.SubmissionError, match=says) as refused:
        Submission.of(source, language, author=author, name=name)
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


def test_what_is_no_submission_at_all_is_refused(project: Path) -> None:
    with pytest.raises(kernelmark.SubmissionError, match="its source is of type list"):
        kernelmark.grade("double", ["kernel.py"])  # type: ignore[arg-type]
    assert Submission.of("x", "py", author="ada", name="\ud800.py").name == "\\ud800.py"
