"""`kernelmark compare`: which source is graded against which, with a judge that gives prepared answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.submission import Submission
from harness.verdict import Doubt, Outcome, Ratio, Speedup, Verdict
from tests.unit.conftest import Answering, Command, recorded
from tests.verdicts import accepted, failed


def beside(low: float, median: float, high: float) -> Verdict:
    ratio = Ratio(low=low, median=median, high=high, confidence=0.95)
    return accepted().model_copy(update={"speedups": (Speedup(baseline="other", sha256="0" * 64, ratio=ratio),)})


@pytest.mark.parametrize(
    ("interval", "pattern"),
    [
        ((1.1, 1.2, 1.3), "faster"),
        ((0.7, 0.8, 0.9), "slower"),
        ((0.9, 1.0, 1.1), "no difference was measured"),
        ((1.08, 7.2, 372.9), "not decided, the interval is too wide"),
    ],
)
def test_one_file_is_graded_against_another(
    project: Path, run: Command, judge: Answering, interval: tuple[float, float, float], pattern: str
) -> None:
    (project / "other.py").write_text("def twice(x, y): y.copy_(x + x)\n")
    asked = judge(beside(*interval))
    result = run("compare", "kernel.py", "other.py", "--problem", "double", "--quick")
    assert result.code == 0, result.err
    assert [other.name for other in asked.setup.baselines] == ["other.py"]
    assert asked.setup.effort == "quick"
    assert "against     other.py by ada" in result.out
    assert re.match(rf"{pattern}: \S+ is {interval[1]:.3f} \[.*\] times as fast as other\.py\n", result.out)
    assert not (project / "leaderboard").exists(), "nothing is recorded"


def test_a_run_stands_for_the_source_that_was_graded(project: Path, run: Command, judge: Answering) -> None:
    source, verdict = (project / "kernel.py").read_bytes(), accepted(run="abc0000000000000")
    graded = Submission.of(source, "py", author="ada", name="kernel.py")
    judge(verdict.model_copy(update={"submission": verdict.submission.model_copy(update={"sha256": graded.sha256})}))
    assert run("submit", "double", "kernel.py").code == 0
    (project / "kernel.py").write_text("def twice(x, y): y.add_(x)\n")
    asked = judge(beside(1.1, 1.2, 1.3))
    assert run("compare", "kernel.py", "abc", "--problem", "problems/double").code == 0, "a path names it, too"
    asked = judge(beside(1.1, 1.2, 1.3))
    assert run("compare", "kernel.py", "abc", "--format", "json").code == 0, "the run says which problem"
    [baseline] = asked.setup.baselines
    assert baseline.source == source
    assert len(recorded(project)) == 1


def test_interpreted_kernels_are_refused_before_timing(project: Path, run: Command, judge: Answering) -> None:
    (project / "triton.py").write_text("import triton\n")
    checked = judge(accepted(device_kind="cpu", interpreted=True))
    result = run("compare", "kernel.py", "triton.py", "--problem", "double", "--device", "cpu")
    assert (result.code, result.out) == (2, "")
    assert (
        "triton.py runs in Triton's interpreter here, whose times say nothing about speed; compare it on" in result.err
    )
    assert checked.setup.only == ["small"], "one test of B was run, and nothing else"


def test_other_files_go_with_the_kernel_beside_which_they_are(project: Path, run: Command, judge: Answering) -> None:
    for name in ("one/kernel.py", "one/tiling.py", "two/kernel.py", "two/tiling.py", "two/kernel.cpp", "any/rows.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(f"# {name}\n")

    def given(first: str, second: str, *others: str) -> list[list[str]]:
        """The sources of the files beside A and beside B."""
        asked = judge(beside(1.1, 1.2, 1.3))
        words = [word for other in others for word in ("--with", other)]
        ended = run("compare", first, second, *words, "--problem", "double")
        assert ended.code == 0, ended.err
        graded = (asked.setup.submission, *asked.setup.baselines)
        return [[content.decode()[2:-1] for _, content in submission.beside] for submission in graded]

    each_its_own = given("one/kernel.py", "two/kernel.py", "one/tiling.py", "two/tiling.py", "any/rows.py")
    assert each_its_own == [["any/rows.py", "one/tiling.py"], ["any/rows.py", "two/tiling.py"]]
    (project / "one/other.py").write_text("# another\n")
    assert given("one/kernel.py", "one/other.py", "one/../one/tiling.py") == [["one/tiling.py"]] * 2
    assert given("two/kernel.py", "two/kernel.cpp", "two/tiling.py") == [["two/tiling.py"], []], "a .cpp takes none"
    refused = run("compare", "one/kernel.py", "one/kernel.py", "--with", "kernelmark.toml", "--problem", "double")
    assert (refused.code, "--with kernelmark.toml goes with neither A nor B; a .py takes" in refused.err) == (2, True)


def test_a_module_that_was_not_given_is_named_for_either(project: Path, run: Command, judge: Answering) -> None:
    for name in ("one/kernel.py", "one/tiling.py", "two/kernel.py", "two/tiling.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("import tiling\n")
    why = "line 1: ModuleNotFoundError: No module named 'tiling'"
    doubt = Doubt(code="no_baseline", text=f"baseline kernel: {why}")
    judge(failed(Outcome.RUNTIME_ERROR, message=why), accepted().model_copy(update={"doubts": (doubt,)}))
    for folder, code in (("one", 4), ("two", 2)):
        ended = run("compare", "one/kernel.py", "two/kernel.py", "--problem", "double")
        assert ended.code == code
        assert f"tiling.py lies beside kernel.py and was not given: add `--with {folder}/tiling.py`" in ended.err


def test_a_comparison_that_is_impossible_gets_one_line(project: Path, run: Command, judge: Answering) -> None:
    doubt = Doubt(code="no_baseline", text="baseline kernel: it crashed")
    judge(accepted().model_copy(update={"doubts": (doubt,)}), accepted(), failed())
    for why in (": baseline kernel: it crashed\n", "; `kernelmark check` says why"):
        result = run("compare", "kernel.py", "kernel.py", "--problem", "double")
        assert (result.code, f"kernel.py could not be timed in alternation with the other one{why}" in result.err) == (
            2,
            True,
        )
    assert run("compare", "kernel.py", "kernel.py", "--problem", "double").code == 1, "the first one is wrong"
    folder = project / "submissions" / "double" / "bob"
    folder.mkdir(parents=True)
    (folder / "kernel.py").write_bytes((project / "kernel.py").read_bytes())
    assert run("compare", "kernel.py", str(folder / "kernel.py")).code != 2, "the folder says which problem"
    eager = project / "reference" / "double" / "eager.py"
    eager.parent.mkdir(parents=True)
    eager.write_text("def twice(x, y): y.copy_(x + x)\n")
    judge(beside(1.1, 1.2, 1.3))
    assert "against     eager.py by reference, sha256" in run("compare", "kernel.py", str(eager)).out
    unknown = run("compare", "kernel.py", "kernel.py")
    assert (unknown.code, "are in no problem's folder" in unknown.err) == (2, True)
    assert run("compare", "kernel.py", "fff").code == 2
