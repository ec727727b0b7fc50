"""Grading from Python, with a judge that gives prepared answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kernelmark
from harness.judge import Progress
from harness.submission import Submission
from harness.verdict import Stage
from tests.unit.conftest import Judge, recorded
from tests.verdicts import accepted

REPOSITORY = Path(__file__).parents[2]


def test_python_grades_source_paths_and_submissions(judge: Callable[..., Judge], project: Path) -> None:
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


@pytest.mark.parametrize("given", ["", "/", "def twice(x, y): pass\0", "\ud800.py", "#" * 10**7])
def test_a_string_that_is_neither_path_nor_source_is_refused_in_one_short_line(project: Path, given: str) -> None:
    """What a model wrote is often cut off: a loop that trains it must tell that from a fault of ours."""
    with pytest.raises(kernelmark.SubmissionError, match="is neither a path nor source with a newline") as refused:
        kernelmark.grade("double", given)
    assert len(str(refused.value)) < 300
    with pytest.raises(kernelmark.SubmissionError, match="is not UTF-8 text"):
        kernelmark.grade("double", "x = '\ud800'\n")
