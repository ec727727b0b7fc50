"""The command line from its arguments to its exit status, with a judge that gives prepared answers and no torch."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import harness.judge
import kernelmark
from harness.errors import HarnessError, SandboxError, UsageError
from harness.judge import Progress
from harness.submission import Submission
from harness.verdict import Check, Outcome, Stage, Verdict
from kernelmark.cli import main, submit
from leaderboard.ledger import JsonlLedger
from tests.verdicts import accepted, failed

REPOSITORY = Path(__file__).parents[2]
PROBLEM = """
title = "Double"
entry = "twice"
parameters = ["n"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "float32" },
    { name = "y", role = "output", shape = ["n"], dtype = "float32" },
]
cost = { bytes = "8 * n", flops = "n" }
tests = [
    { name = "small", params = { n = 4 }, devices = ["cpu"] },
    { name = "secret", params = { n = 77 }, devices = ["cpu"], hidden = true },
]
benchmarks = [{ name = "large", params = { n = 4096 }, devices = ["cpu"] }]
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("KERNELMARK_"):
            monkeypatch.delenv(name)
    for slug, extra in (("double", ""), ("closed", "deadline = 2020-01-01T00:00:00Z\n")):
        directory = tmp_path / "problems" / slug
        directory.mkdir(parents=True)
        (directory / "problem.toml").write_text(extra + PROBLEM)
        (directory / "reference.py").write_text("def reference(x):\n    return 2 * x\n")
    (tmp_path / "kernelmark.toml").write_text('author = "ada"\ndevice = "cpu"\nsandbox = "process"\n')
    (tmp_path / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    before = signal.getsignal(signal.SIGTERM)

    def invoke(*args: str, command: Any = main) -> Ended:
        with pytest.raises(SystemExit) as ended:
            command(list(args), prog_name="kernelmark")
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    yield invoke
    signal.signal(signal.SIGTERM, before)


class Judge:
    """Gives the prepared answers in turn, and remembers what it was asked."""

    def __init__(self, *answers: Verdict | BaseException) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, ...]] = []

    def grade(
        self, problem: Any, submission: Submission, *, provider: Any, device: str, on_progress: Any, **timed: Any
    ) -> Verdict:
        self.asked.append((problem.slug, submission, provider.name, device))
        self.timed = timed
        on_progress(Progress(Stage.TEST, 0, 2, "small"))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer.model_copy(update={"problem": answer.problem.model_copy(update={"slug": problem.slug})})

    def check(self, *args: Any, **kwargs: Any) -> Check:
        verdict = self.grade(*args, **kwargs)
        return Check.model_validate({name: getattr(verdict, name) for name in Check.model_fields})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Judge]:
    def install(*answers: Verdict | BaseException) -> Judge:
        fake = Judge(*answers)
        monkeypatch.setattr(harness.judge, "grade", fake.grade)
        monkeypatch.setattr(harness.judge, "check", fake.check)
        return fake

    return install


def test_effort_and_baselines_reach_the_judge(run: Run, judge: Callable[..., Judge], project: Path) -> None:
    fake = judge(accepted(), accepted(), accepted())
    (project / "reference" / "double").mkdir(parents=True)
    (project / "reference" / "double" / "eager.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    assert run("bench", "double", "kernel.py").code == 0
    assert fake.timed == {"effort": "default", "baselines": [], "calibrations": []}, "none on a CPU unless named"
    assert run("bench", "double", "kernel.py", "--quick").code == 0
    assert fake.timed["effort"] == "quick"
    assert run("bench", "double", "kernel.py", "--thorough", "--baseline", "eager").code == 0
    assert fake.timed["effort"] == "thorough"
    assert [baseline.name for baseline in fake.timed["baselines"]] == ["eager.py"]
    ended = run("bench", "double", "kernel.py", "--baseline", "eger")
    assert ended.code == 2
    assert "did you mean `eager`?" in ended.err


def recorded(project: Path) -> list[Verdict]:
    return [entry.verdict for entry in JsonlLedger(project / "leaderboard/results/double.jsonl").read()]


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("accepted", 0), ("wrong_answer", 1), ("compile_error", 3), ("runtime_error", 4), ("memory_limit", 4),
     ("timeout", 5), ("rejected", 6)],
)  # fmt: skip
@pytest.mark.parametrize("command", ["submit", "bench", "check"])
def test_every_outcome_ends_with_its_status_and_only_submit_records_it(
    run: Run, judge: Callable[..., Judge], project: Path, command: str, outcome: str, code: int
) -> None:
    verdict = accepted() if outcome == "accepted" else failed(Outcome(outcome))
    judge(verdict)
    ended = run(command, "double", "kernel.py")
    assert ended.code == code
    assert ended.out.startswith(outcome.replace("_", " "))
    assert (verdict.run in ended.out) == (command == "submit"), "`show` would know nothing of another"
    assert [v.run for v in recorded(project)] == ([verdict.run] if command == "submit" else [])
    assert (project / "leaderboard/BOARD.md").exists() == (command == "submit")


def test_submit_archives_records_ranks_and_rewrites_the_board(
    run: Run, judge: Callable[..., Judge], project: Path
) -> None:
    fake = judge(accepted(author="bob", score_ns=40_000), accepted(score_ns=57_300))
    run("--author", "bob", "problems/double", "kernel.py", command=submit)
    ended = run("double", "kernel.py", command=submit)
    assert "standing    rank 2 of 2 on NVIDIA H200" in ended.out
    assert ended.err == "test 1/2 small\n"
    assert [asked[1].author for asked in fake.asked] == ["bob", "ada"]
    assert [(asked[0], asked[2], asked[3]) for asked in fake.asked] == [("double", "process", "cpu")] * 2
    [archived] = (project / "submissions/double/ada").iterdir()
    assert archived.read_bytes() == (project / "kernel.py").read_bytes()
    board = (project / "leaderboard/BOARD.md").read_text()
    assert board.index("| bob |") < board.index("| ada |")


def test_no_record_leaves_nothing_behind(run: Run, judge: Callable[..., Judge], project: Path) -> None:
    judge(accepted())
    assert run("submit", "--no-record", "double", "kernel.py").code == 0
    assert not (project / "leaderboard").exists()
    assert not (project / "submissions").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "Missing argument 'PROBLEM'"),
        (("double",), "Missing argument 'FILE'"),
        (("doubel", "kernel.py"), "doubel: no such problem; did you mean `double`?"),
        ((".", "kernel.py"), ".: holds no problem.toml"),
        (("d" * 5000, "kernel.py"), f"{'d' * 80}: cannot be looked for (File name too long)"),
        (("double", "absent.py"), "absent.py: cannot be read (No such file or directory)"),
        (("double", "kernelmark.toml"), "unknown language '.toml'"),
        (("double", "kernel.py", "--author", "a/b\x1b[0m"), r"author: 'a/b\x1b[0m' cannot be one"),
        (("double", "kernel.py", "--author", ""), "author: '' cannot be one"),
        (("double", "kernel.py", "--device", "tpu"), "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        (("double", "kernel.cpp", "--device", "cuda"), "--device cuda: a .cpp file runs on a CPU"),
        (("double", "kernel.py", "--devcie", "cpu"), "No such option"),
        (("closed", "kernel.py"), "problem closed: its deadline passed on 2020-01-01"),
    ],
)
def test_a_usage_error_is_one_line_ends_with_2_and_leaves_no_trace(
    run: Run, judge: Callable[..., Judge], project: Path, args: tuple[str, ...], message: str
) -> None:
    (project / "kernel.cpp").write_text("// nothing\n")
    fake = judge()
    ended = run(*args, command=submit)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("kernelmark: error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not fake.asked
    assert not (project / "leaderboard").exists()


def test_a_closed_problem_can_still_be_graded_unrecorded(run: Run, judge: Callable[..., Judge]) -> None:
    judge(accepted(), accepted())
    assert run("submit", "closed", "kernel.py", "--no-record").code == 0
    assert run("bench", "closed", "kernel.py").code == 0


def test_a_problem_without_a_case_for_the_device_is_refused(
    run: Run, judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelmark.api.cuda_is_here", lambda: True)
    fake = judge(accepted())
    for command in ("check", "bench", "submit"):
        refused = run(command, "double", "kernel.py", "--device", "cuda")
        assert (refused.code, "problem double: has no case for cuda" in refused.err) == (2, True)
    assert not fake.asked


def test_a_failure_of_ours_is_tried_once_more(
    run: Run, judge: Callable[..., Judge], project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    verdict = accepted()
    fake = judge(SandboxError("the daemon hiccuped\x1b"), verdict)
    with caplog.at_level(logging.WARNING):
        assert run("submit", "double", "kernel.py").code == 0
    assert len(fake.asked) == 2
    assert r"the daemon hiccuped\x1b; trying once more" in caplog.text
    assert [v.run for v in recorded(project)] == [verdict.run]


def test_a_failure_of_ours_twice_ends_with_7_and_records_nothing(
    run: Run, judge: Callable[..., Judge], project: Path
) -> None:
    fake = judge(HarnessError("first"), HarnessError("second", "call us"), accepted())
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, ended.out, len(fake.asked)) == (7, "", 2)
    assert ended.err.endswith("kernelmark: error: second; call us\n")
    assert recorded(project) == []


def test_a_usage_error_of_the_judge_is_not_tried_again(run: Run, judge: Callable[..., Judge]) -> None:
    fake = judge(UsageError("reference.py:3", "returns nothing"), accepted())
    assert run("bench", "double", "kernel.py").code == 2
    assert len(fake.asked) == 1


def test_what_nobody_expected_is_our_fault_and_its_traceback_is_kept(
    run: Run, judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(ZeroDivisionError("a\nb"), ZeroDivisionError("again"))
    ended = run("bench", "double", "kernel.py")
    assert ended.code == 7
    found = re.search(r"^kernelmark: error: unexpected ZeroDivisionError: a b; traceback in (\S+)$", ended.err, re.M)
    assert found is not None
    file = Path(found[1])
    assert "Traceback (most recent call last)" in file.read_text()
    file.unlink()
    monkeypatch.setenv("KERNELMARK_DEBUG", "1")
    shown = run("bench", "double", "kernel.py")
    assert shown.code == 7
    assert "Traceback (most recent call last)" in shown.err


def test_interruption_ends_with_130_and_termination_unwinds_the_stack(
    run: Run, judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    judge(KeyboardInterrupt())
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.endswith("\nkernelmark: error: interrupted\n")
    unwound = []

    def terminated(*_: Any, **__: Any) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            unwound.append(True)

    monkeypatch.setattr(harness.judge, "grade", terminated)
    assert run("submit", "double", "kernel.py").code == 143
    assert unwound == [True]
    assert recorded(project) == []


def test_json_on_stdout_is_the_stored_document_and_nothing_else(
    run: Run, judge: Callable[..., Judge], project: Path
) -> None:
    verdict = accepted()
    judge(verdict, verdict)
    graded = run("submit", "double", "kernel.py", "--format", "json")
    assert Verdict.from_json(graded.out).run == verdict.run
    assert run("show", verdict.run, "--format", "json").out == graded.out
    checked = json.loads(run("check", "double", "kernel.py", "--format", "json").out)
    assert checked["outcome"] == "accepted"
    assert "benchmarks" not in checked
    [table] = json.loads(run("board", "double", "--format", "json").out)
    assert [row["run"] for row in table["rows"]] == [verdict.run]


def test_show_takes_a_prefix_that_is_unique_over_all_problems(run: Run, judge: Callable[..., Judge]) -> None:
    first, second = accepted(run="abc0000000000000"), accepted(run="abd0000000000000")
    judge(first, second)
    run("submit", "double", "kernel.py")
    (Path("problems/closed/problem.toml")).write_text(PROBLEM)
    run("submit", "closed", "kernel.py")
    assert "abd0000000000000" in run("show", "abd").out
    ambiguous, unknown = run("show", "ab"), run("show", "ff")
    assert (ambiguous.code, unknown.code) == (2, 2)
    assert "abd0000000000000, abc0000000000000; give more digits" in ambiguous.err
    assert "run ff: was never recorded here" in unknown.err


def test_a_result_that_cannot_be_recorded_is_shown_all_the_same(
    run: Run, judge: Callable[..., Judge], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = project / "leaderboard/results/double.jsonl"
    ledger.parent.mkdir(parents=True)
    verdict = accepted()
    fake = judge(verdict)
    grade = fake.grade

    def meanwhile(*args: Any, **kwargs: Any) -> Verdict:
        ledger.write_text("not a ledger line\n")
        return grade(*args, **kwargs)

    monkeypatch.setattr(harness.judge, "grade", meanwhile)
    ended = run("submit", "double", "kernel.py")
    assert ended.code == 7
    assert verdict.run in ended.out
    assert "double.jsonl line 1: is not a ledger line" in ended.err
    assert ledger.read_text() == "not a ledger line\n"


def a_broken_ledger(results: Path) -> None:
    results.mkdir(parents=True)
    (results / "double.jsonl").write_text("not a ledger line\n")


def a_conflict(results: Path) -> None:
    results.mkdir(parents=True)
    (results / "double.jsonl").write_text("<<<<<<< HEAD\n=======\n>>>>>>> theirs\n")


def a_file_for_a_folder(results: Path) -> None:
    results.parent.mkdir()
    results.write_text("")


def a_folder_for_a_file(results: Path) -> None:
    (results / "double.jsonl").mkdir(parents=True)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (a_broken_ledger, "double.jsonl line 1: is not a ledger line; restore the file"),
        (a_conflict, "double.jsonl line 3: is not a ledger line; `kernelmark merge-ledger` makes one ledger of both"),
        (a_file_for_a_folder, "double.jsonl: cannot be made in "),
        (a_folder_for_a_file, "double.jsonl: cannot be appended to (Is a directory)"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_it_is_graded(
    run: Run, judge: Callable[..., Judge], project: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(project / "leaderboard/results")
    fake = judge(accepted())
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, ended.out, fake.asked) == (7, "", [])
    assert message in ended.err
    assert run("submit", "double", "kernel.py", "--no-record").code == 0


def test_where_the_board_alone_cannot_be_written_it_is_said_that_the_verdict_is_recorded(
    run: Run, judge: Callable[..., Judge], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMARK_BOARD", str(project / "kernelmark.toml" / "BOARD.md"))
    verdict = accepted()
    judge(verdict)
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, [v.run for v in recorded(project)]) == (7, [verdict.run])
    assert "error: it is recorded, but " in ended.err
    assert "; `kernelmark board --write` writes the board anew" in ended.err


def test_two_problems_of_one_name_never_share_a_ledger(run: Run, judge: Callable[..., Judge], project: Path) -> None:
    """A copy of a closed problem has no deadline, or easier tests, and its results would stand on the same page."""
    other = project / "elsewhere" / "closed"
    shutil.copytree(project / "problems" / "double", other)
    fake = judge(accepted())
    ended = run("submit", "elsewhere/closed", "kernel.py")
    assert (ended.code, fake.asked) == (2, [])
    assert "is not the project's problem of this name, " in ended.err
    assert run("bench", "elsewhere/closed", "kernel.py").code == 0


def test_one_broken_problem_hides_no_other(run: Run, project: Path) -> None:
    (project / "problems" / "closed" / "problem.toml").write_text("x =")
    ended = run("problems", "list")
    assert (ended.code, ended.out) == (2, "double  Double  2 tests, 1 benchmark\n")
    assert "closed/problem.toml: is not TOML" in ended.err


def test_boards_and_problems_are_listed(run: Run, judge: Callable[..., Judge]) -> None:
    judge(accepted())
    run("submit", "double", "kernel.py")
    assert "double on NVIDIA H200 (cuda), protocol 1" in run("board").out
    assert run("board", "closed").out == "no submission has been accepted yet\n"
    assert run("board", "nothing").code == 2
    assert [line.split()[0] for line in run("problems", "list").out.splitlines()] == ["closed", "double"]
    shown = run("problems", "show", "double")
    assert "entry       twice(x, y)" in shown.out
    document = run("problems", "show", "double", "--format", "json").out
    for secret in ("77", "secret"):
        assert secret not in shown.out
        assert secret not in document
    assert (json.loads(document)["hidden_tests"], "and 1 hidden one\n" in shown.out) == (1, True)
    schema = json.loads(run("problems", "schema").out)
    assert {"entry", "tensors", "tests", "benchmarks"} <= set(schema["required"])


def test_the_version_is_that_of_the_package(run: Run) -> None:
    package = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert run("--version").out == f"kernelmark, version {package['version']}\n"
    assert package["scripts"] == {"submit": "kernelmark.scripts:submit", "kernelmark": "kernelmark.scripts:main"}


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    ended = run()
    assert ended.code == 0
    for command in ("bench", "board", "check", "doctor", "problems", "show", "submit"):
        assert f"\n  {command} " in ended.out


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


def test_a_file_whose_name_is_no_text_is_recorded(run: Run, judge: Callable[..., Judge], project: Path) -> None:
    fake = judge(accepted())
    file = os.fsencode(project) + b"/k\xff.py"
    Path(os.fsdecode(file)).write_text("def twice(x, y): y.copy_(2 * x)\n")
    assert run("submit", "double", os.fsdecode(file)).code == 0
    assert fake.asked[0][1].name == "k\\xff.py"


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import kernelmark", {"pydantic", "click", "torch"}),
        ("from kernelmark.cli import submit; submit(['--help'])", {"pydantic", "rich", "torch"}),
        ("from kernelmark.cli import submit; submit(['softmax', 'absent.py'])", {"docker", "rich", "torch"}),
    ],
)
def test_starting_up_imports_nothing_that_is_slow(program: str, absent: set[str]) -> None:
    code = f"import sys\ntry:\n    {program}\nexcept SystemExit: pass\nprint(*sys.modules)"
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": os.environ["PATH"]}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    assert not absent & set(answer.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--nonsense", 2)])
def test_a_console_script_ends_at_once_with_everything_printed(argument: str, status: int) -> None:
    line = [sys.executable, "-c", "from kernelmark.scripts import submit; submit()", argument]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert ended.returncode == status
    assert ("Exit status" in ended.stdout) == (status == 0)
    assert ("No such option" in ended.stderr) == (status == 2)


@pytest.mark.parametrize("gone", ["stdout", "stderr"])
def test_a_reader_that_has_gone_changes_no_exit_status(run: Run, judge: Callable[..., Judge], gone: str) -> None:
    """`submit ... | head -1` and `2>&1 | grep -q`: click would end with 1, which blames the submission."""
    judge(failed(Outcome.TIMEOUT))
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(writing, "w", buffering=1) as pipe:
        patch.setattr(sys, gone, pipe)
        assert run("submit", "double", "kernel.py").code == Outcome.TIMEOUT.exit_code
        assert run("submit", "double", "absent.py").code == 2
        assert run("board", "double").code == 0
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def test_a_pipe_of_ours_that_breaks_is_our_fault(run: Run, judge: Callable[..., Judge]) -> None:
    judge(BrokenPipeError(32, "Broken pipe"))
    ended = run("submit", "double", "kernel.py")
    assert ended.code == HarnessError.exit_code
    assert "unexpected BrokenPipeError" in ended.err
