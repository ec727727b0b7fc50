"""The command line from its arguments to its exit status, with a judge that gives prepared answers and no torch."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from unittest.mock import Mock

import pytest

from harness.errors import HarnessError, SandboxError, UsageError
from harness.problem import load
from harness.verdict import Outcome, Verdict
from kernelmark.commands.cli import main, submit
from kernelmark.project.problems import of_one_case, visible_test
from tests.documents import items
from tests.unit.conftest import PROBLEM, ROOT, Answering, Command, recorded
from tests.verdicts import accepted, failed


def test_effort_and_baselines_reach_the_judge(run: Command, judge: Answering, project: Path) -> None:
    fake = judge(*(accepted() for _ in range(4)))
    (project / "reference" / "double").mkdir(parents=True)
    (project / "reference" / "double" / "eager.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    assert run("bench", "double", "kernel.py").code == 0
    given = fake.setup
    assert (given.effort, given.baselines, given.calibrations) == ("default", [], []), "none on a CPU unless named"
    assert run("submit", "closed", "kernel.py", "--quick", "--no-record").code == 0, "it is closed to records only"
    assert run("bench", "closed", "kernel.py", "--quick").code == 0
    assert fake.setup.effort == "quick"
    assert run("bench", "double", "kernel.py", "--thorough", "--baseline", "eager").code == 0
    assert fake.setup.effort == "thorough"
    assert [baseline.name for baseline in fake.setup.baselines] == ["eager.py"]
    ended = run("bench", "double", "kernel.py", "--baseline", "eger")
    assert (ended.code, "did you mean `eager`?" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("accepted", 0), ("wrong_answer", 1), ("compile_error", 3), ("runtime_error", 4), ("memory_limit", 4),
     ("timeout", 5), ("rejected", 6), ("unsupported", 8)],
)  # fmt: skip
@pytest.mark.parametrize("command", ["submit", "bench", "check"])
def test_every_outcome_ends_with_its_status_and_only_submit_records_it(
    run: Command, judge: Answering, project: Path, command: str, outcome: str, code: int
) -> None:
    verdict = accepted() if outcome == "accepted" else failed(Outcome(outcome))
    judge(verdict)
    ended = run(command, "double", "kernel.py")
    assert ended.code == code
    assert ended.out.startswith(outcome.replace("_", " "))
    assert (verdict.run in ended.out) == (command == "submit"), "`show` would know nothing of another"
    assert [v.run for v in recorded(project)] == ([verdict.run] if command == "submit" else [])
    assert (project / "leaderboard/BOARD.md").exists() == (command == "submit")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("double",), "Missing argument 'FILE'"),
        (("", "kernel.py"), "the problem has no name; `kernelmark problems list` lists the problems"),
        (("doubel", "kernel.py"), "doubel: no such problem; did you mean `double`?"),
        (("wholly", "kernel.py"), "wholly: no such problem; `kernelmark problems list` lists the problems"),
        ((".", "kernel.py"), ". holds no problem.toml"),
        (("kernel.py", "double"), "kernel.py is a file, not a problem; name the problem first, then the file"),
        (("double", "problems"), "problems is a folder, not a kernel; name the file in it (.py, .cu or .cpp)"),
        (("double", "empty.py"), "empty.py is empty; save your kernel first"),
        (("double", "latin.py"), "latin.py is not UTF-8 text (byte 2); save it as UTF-8"),
        (("d" * 5000, "kernel.py"), f"{'d' * 80} cannot be looked for (File name too long)"),
        (("double", "absent.py"), "absent.py cannot be read (No such file or directory)"),
        (("double", "kernelmark.toml"), "unknown language '.toml'"),
        (("double", "kernel.py", "--author", "a/b\x1b[0m"), r"author: 'a/b\x1b[0m' is not a valid name"),
        (("double", "kernel.py", "--device", "tpu"), "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        (("double", "kernel.cpp", "--device", "cuda"), "device cuda: a .cpp file runs on a CPU"),
        (("double", "kernel.py", "--devcie", "cpu"), "No such option"),
        (("closed", "kernel.py"), "problem closed takes no more submissions, closed since 2020-01-01"),
    ],
)
def test_a_usage_error_is_one_line_ends_with_2_and_leaves_no_trace(
    run: Command, judge: Answering, project: Path, args: tuple[str, ...], message: str
) -> None:
    (project / "kernel.cpp").write_text("// nothing\n")
    (project / "empty.py").write_text("\n")
    (project / "latin.py").write_bytes("# é".encode("latin-1"))
    fake = judge()
    ended = run(*args, command=submit)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("kernelmark: error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not fake.asked
    assert not (project / "leaderboard").exists()


@pytest.mark.parametrize(
    "args",
    [
        ("board",), ("board", "--write"), ("problems", "list"), ("show", "abc"), ("bench", "double", "../kernel.py"),
        ("select", "0123"), ("site", "build"), ("import-ledger", ".."), ("problems", "lint"), ("calibrate",),
    ],
)  # fmt: skip
def test_a_folder_that_is_in_no_project_is_named(
    run: Command, project: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    (project / "kernelmark.toml").unlink()
    (project / "nowhere").mkdir()
    monkeypatch.chdir(project / "nowhere")
    ended = run(*args)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "nowhere is not in a project: there is no kernelmark.toml here or in a folder above; change to" in ended.err
    assert "or name a server: --to SERVER, --from SERVER to read" in ended.err
    assert [*Path().iterdir()] == []


def test_paths_select_a_project(run: Command, judge: Answering, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = project / "own"
    own.mkdir()
    (own / "kernelmark.toml").write_text("")
    monkeypatch.chdir(own)
    judge(verdict := accepted())
    assert run("submit", "../problems/double", "../kernel.py").code == 0
    assert [v.run for v in recorded(project)] == [verdict.run]
    assert verdict.run in run("board", "../problems/double").out
    assert not (own / "leaderboard").exists()


@pytest.mark.parametrize(
    ("test", "message"),
    [("smal", "test 'smal' is not one of double; did you mean `small`?"), ("secret", "known: `small`")],
)
def test_unknown_and_hidden_tests_cannot_be_run_alone(run: Command, judge: Answering, test: str, message: str) -> None:
    fake = judge(accepted())
    ended = run("check", "double", "kernel.py", "--only", "small", "--only", test)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert message in ended.err
    assert not fake.asked


def test_a_case_of_another_device_is_not_called_unknown() -> None:
    problem = load(ROOT / "problems/vector_add")
    with pytest.raises(UsageError, match=r"^test 'a large prime' does not run on the device cpu; known:"):
        visible_test(problem, "cpu", "a large prime")
    with pytest.raises(UsageError, match=r"^case '1024 squared' does not run on the device cpu; known:"):
        of_one_case(problem, "1024 squared", "cpu")


def test_nothing_is_measured_for_a_calibration_that_cannot_be_written(
    run: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.judge.calibrate.measure", measure := Mock())
    (project / "leaderboard").write_text("a file")
    ended = run("calibrate")
    assert (ended.code, "devices cannot be written in" in ended.err) == (2, True)
    assert not measure.called


def test_one_benchmark_can_be_timed_or_called_alone(run: Command, judge: Answering) -> None:
    timed = judge(accepted(problem="double"))
    assert run("bench", "double", "kernel.py", "--case", "large").code == 0
    assert [case.name for case in timed.setup.problem.benchmarks] == ["large"]
    checked = judge(accepted(problem="double"))
    run("check", "double", "kernel.py", "--case", "large")
    assert checked.setup.only == ["large"]
    assert checked.setup.problem.tests[0].params == timed.setup.problem.benchmarks[0].params
    for command in ("bench", "check"):
        lost = run(command, "double", "kernel.py", "--case", "larg")
        assert (lost.code, "did you mean `large`?" in lost.err) == (2, True)


def test_a_problem_needs_cases_for_the_device(run: Command, judge: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelmark.project.choice.cuda_is_here", lambda: True)
    fake = judge(accepted())
    for command in ("check", "bench", "submit"):
        refused = run(command, "double", "kernel.py", "--device", "cuda")
        assert (refused.code, "problem double has no case for cuda; use the device cpu" in refused.err) == (2, True)
    monkeypatch.setattr("kernelmark.project.choice.cuda_is_here", lambda: False)
    refused = run("check", "double", "kernel.py", "--device", "cuda")
    assert (refused.code, "`kernelmark doctor` says why" in refused.err) == (2, True)
    toml = Path("problems/double/problem.toml")
    toml.write_text(toml.read_text().replace("cpu", "cuda"))
    assert "problem double has no case for cpu; it needs a GPU" in run("check", "double", "kernel.py").err
    assert not fake.asked


def test_a_harness_failure_is_retried_once(
    run: Command, judge: Answering, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    verdict = accepted()
    fake = judge(SandboxError("the daemon hiccuped\x1b"), verdict)
    with caplog.at_level(logging.WARNING):
        assert run("submit", "double", "kernel.py").code == 0
    assert len(fake.asked) == 2
    assert r"the daemon hiccuped\x1b; trying once more" in caplog.text
    assert [v.run for v in recorded(project)] == [verdict.run]


@pytest.mark.parametrize(
    ("errors", "code", "message"),
    [
        ((HarnessError("first"), HarnessError("second", "call us")), 7, "second; call us"),
        ((UsageError("reference.py:3", "returns nothing"),), 2, "reference.py:3: returns nothing"),
    ],
    ids=["ours, twice", "the user's, once"],
)
def test_a_failed_command_records_nothing(
    run: Command, judge: Answering, project: Path, errors: tuple[Exception, ...], code: int, message: str
) -> None:
    fake = judge(*errors, accepted())
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, ended.out, len(fake.asked)) == (code, "", len(errors))
    assert ended.err.endswith(f"kernelmark: error: {message}\n")
    assert recorded(project) == []


def test_json_on_stdout_is_the_stored_document_and_nothing_else(run: Command, judge: Answering, project: Path) -> None:
    verdict = accepted()
    judge(verdict, verdict)
    graded = run("submit", "double", "kernel.py", "--format", "json")
    assert Verdict.from_json(graded.out).run == verdict.run
    assert run("show", verdict.run, "--format", "json").out == graded.out
    checked = json.loads(run("check", "double", "kernel.py", "--format", "json").out)
    assert checked["outcome"] == "accepted"
    assert "benchmarks" not in checked
    [table] = items(run("board", "double", "--format", "json").out)
    assert [row["run"] for row in table["rows"]] == [verdict.run]


def test_show_takes_a_prefix_that_is_unique_over_all_problems(run: Command, judge: Answering) -> None:
    first, second = accepted(run="abc0000000000000"), accepted(run="abd0000000000000")
    judge(first, second)
    run("submit", "double", "kernel.py")
    (Path("problems/closed/problem.toml")).write_text(PROBLEM)
    run("submit", "closed", "kernel.py")
    assert "abd0000000000000" in run("show", "abd").out
    ambiguous, unknown = run("show", "ab"), run("show", "ff")
    assert (ambiguous.code, unknown.code) == (2, 2)
    assert "abd0000000000000, abc0000000000000; give more digits" in ambiguous.err
    assert "run ff was never recorded here; `kernelmark runs` lists all runs" in unknown.err


def test_one_broken_problem_hides_no_other(run: Command, project: Path) -> None:
    (project / "problems" / "closed" / "problem.toml").write_text("x =")
    ended = run("problems", "list")
    assert (ended.code, ended.out) == (2, "double  Double\n")
    assert "closed/problem.toml is not TOML" in ended.err


def test_boards_and_problems_are_listed(run: Command, judge: Answering) -> None:
    judge(accepted())
    run("submit", "double", "kernel.py")
    assert "double on NVIDIA H200 (cuda), plain calls, protocol 1" in run("board").out
    assert run("board", "closed").out == "the board shows no submission yet\n"
    assert run("board", "nothing").code == 2
    closed, deadline, double = run("problems", "list").out.splitlines()
    assert (closed, deadline[:23], double) == ("closed  Double", "        closed since 20", "double  Double")
    shown = run("problems", "show", "double")
    assert "Python      twice(x, y): a function that writes into y" in shown.out
    document = run("problems", "show", "double", "--format", "json").out
    whole = json.loads(document)
    del whole["directory"], whole["sha256"]  # where any digits may stand
    for secret in ("77", "secret"):
        assert secret not in shown.out
        assert secret not in json.dumps(whole)
    assert (json.loads(document)["hidden_tests"], "and 1 hidden one\n" in shown.out) == (1, True)
    schema = json.loads(run("problems", "schema").out)
    assert {"entry", "tensors", "tests", "benchmarks"} <= set(schema["required"])


def test_without_a_command_the_help_is_shown(run: Command) -> None:
    ended = run()
    assert (ended.code, [name for name in main.commands if f"\n  {name} " not in ended.out]) == (0, [])
