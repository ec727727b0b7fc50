"""What `submit` records, what it refuses to record before it grades, and what it says where it cannot."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness.judge
from harness.errors import HarnessError
from harness.profiling import nsight
from harness.profiling.code import CompiledCode
from harness.profiling.memory import Timeline
from harness.profiling.nsight import KernelMetrics, NsightMetric, NsightProfile
from harness.profiling.sanitizer import ToolReport
from harness.profiling.stacks import parse
from harness.profiling.torch_profile import TorchProfile
from harness.verdict import Verdict
from kernelmark.commands.cli import submit
from kernelmark.diagnostics import profiling
from kernelmark.diagnostics.profiling.views import KernelProfile
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.profile import fitted
from tests.unit.conftest import Answering, Command, recorded
from tests.verdicts import accepted, failed

REPOSITORY = Path(__file__).parents[2]


def test_submit_archives_records_ranks_and_rewrites_the_board(run: Command, judge: Answering, project: Path) -> None:
    fake = judge(accepted(author="bob", score_ns=40_000), accepted(score_ns=57_300))
    run("--author", "bob", "problems/double", "kernel.py", command=submit)
    ended = run("double", "kernel.py", command=submit)
    assert "standing    rank 2 of 2 on NVIDIA H200" in ended.out
    assert ended.err == "test: 2 cases\n"
    assert [asked[1].author for asked in fake.asked] == ["bob", "ada"]
    assert [(asked[0], asked[2], asked[3]) for asked in fake.asked] == [("double", "process", "cpu")] * 2
    [archived] = (project / "leaderboard/archive/double/ada").iterdir()
    assert archived.read_bytes() == (project / "kernel.py").read_bytes()
    board = (project / "leaderboard/BOARD.md").read_text()
    assert board.index("| bob |") < board.index("| ada |")


def test_the_first_result_names_its_default_author(
    run: Command, judge: Answering, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\n')
    monkeypatch.setattr("kernelmark.project.settings.default_author", lambda _: "root")
    judge(*(accepted(author=author) for author in ("root", "bob", "root", "root")))
    unrecorded = run("bench", "double", "kernel.py")
    named = run("double", "kernel.py", "--author", "bob", command=submit)
    first, second = (run("double", "kernel.py", command=submit) for _ in range(2))
    message = "recorded under the name root, from git or the login; --author or the setting `author` names another\n"
    assert [message in ended.err for ended in (unrecorded, named, first, second)] == [False, False, True, False]


def test_no_record_leaves_nothing_behind(run: Command, judge: Answering, project: Path) -> None:
    judge(accepted())
    assert run("submit", "--no-record", "double", "kernel.py").code == 0
    assert not (project / "leaderboard").exists()


def test_a_result_that_cannot_be_recorded_is_shown_all_the_same(
    run: Command, judge: Answering, project: Path, monkeypatch: pytest.MonkeyPatch
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
    assert ended.out.startswith("accepted: ")
    assert verdict.run not in ended.out, "`kernelmark show` would not find it"
    assert "double.jsonl line 1 is not a ledger line" in ended.err
    assert ledger.read_text() == "not a ledger line\n"


def a_broken_ledger(results: Path) -> None:
    results.mkdir(parents=True)
    (results / "double.jsonl").write_text("not a ledger line\n")


def a_doubled_line(results: Path) -> None:
    """The second of three lines, as after a merge that kept both sides."""
    ledger = JsonlLedger(results / "double.jsonl")
    for _ in range(3):
        ledger.append(accepted(problem="double"))
    first, doubled, last = ledger.path.read_bytes().splitlines(keepends=True)
    ledger.path.write_bytes(first + doubled + doubled + last)


def a_conflict(results: Path) -> None:
    results.mkdir(parents=True)
    (results / "double.jsonl").write_text("<<<<<<< HEAD\n=======\n>>>>>>> theirs\n")


def a_file_for_a_folder(results: Path) -> None:
    results.parent.mkdir()
    results.write_text("")


def a_folder_for_a_file(results: Path) -> None:
    (results / "double.jsonl").mkdir(parents=True)


def a_file_for_the_archive(results: Path) -> None:
    results.mkdir(parents=True)
    (results.parent.parent / "leaderboard/archive").write_text("")


@pytest.mark.parametrize(
    ("spoil", "code", "message"),
    [
        (a_file_for_the_archive, 2, "-kernel.py: the submission cannot be archived in "),
        (a_broken_ledger, 7, "double.jsonl line 1 is not a ledger line; restore the file"),
        (a_doubled_line, 7, "double.jsonl line 3 does not follow from the line before it; restore the file"),
        (a_conflict, 7, "double.jsonl line 3 is not a ledger line; `kernelmark merge-ledger` makes one ledger of both"),
        (a_file_for_a_folder, 2, "double.jsonl: the result cannot be recorded in "),
        (
            a_folder_for_a_file,
            2,
            "double.jsonl: the result cannot be recorded there (Is a directory); make that place writable",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_it_is_graded(
    run: Command, judge: Answering, project: Path, spoil: Callable[[Path], None], code: int, message: str
) -> None:
    spoil(project / "leaderboard/results")
    fake = judge(accepted())
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, ended.out, fake.asked) == (code, "", [])
    assert message in ended.err
    assert run("submit", "double", "kernel.py", "--no-record").code == 0


def test_a_board_failure_keeps_the_record(
    run: Command, judge: Answering, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMARK_BOARD", str(project / "kernelmark.toml" / "BOARD.md"))
    verdict = accepted()
    judge(verdict)
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, [v.run for v in recorded(project)]) == (7, [verdict.run])
    assert "error: it is recorded, but " in ended.err
    assert "; `kernelmark board --write` rebuilds the board" in ended.err


def test_two_problems_of_one_name_never_share_a_ledger(run: Command, judge: Answering, project: Path) -> None:
    """A copy of a closed problem has no deadline, or easier tests, and its results would stand on the same page."""
    other = project / "elsewhere" / "closed"
    shutil.copytree(project / "problems" / "double", other)
    fake = judge(accepted())
    ended = run("submit", "elsewhere/closed", "kernel.py")
    assert (ended.code, fake.asked) == (2, [])
    assert "is not the project's problem of this name, " in ended.err
    assert run("bench", "elsewhere/closed", "kernel.py").code == 0


def test_a_file_whose_name_is_no_text_is_recorded(run: Command, judge: Answering, project: Path) -> None:
    fake = judge(accepted())
    file = os.fsencode(project) + b"/k\xff.py"
    Path(os.fsdecode(file)).write_text("def twice(x, y): y.copy_(2 * x)\n")
    assert run("submit", "double", os.fsdecode(file)).code == 0
    assert fake.asked[0][1].name == "k\\xff.py"


ProfilingGives = Callable[[Any], list[str]]
DEAD = KernelProfile("kernel.py", missing={"torch.profiler": "died", "its code": "late"})
SEEN = KernelProfile("kernel.py", TorchProfile(3, stacks={"cpu stacks": parse(b"twice;add 7\n")}), code=CompiledCode())


@pytest.fixture
def profiling_gives(monkeypatch: pytest.MonkeyPatch) -> ProfilingGives:
    """Makes profiling give this answer, or raise it; returns the case that it was asked for, each time."""

    def install(answer: Any) -> list[str]:
        asked = []

        def kernel_profile(submission: Any, problem: Any, *_: Any) -> Any:
            asked.append(problem.benchmarks[0].name)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(profiling, "kernel_profile", kernel_profile)
        return asked

    return install


def test_a_profile_is_stored_next_to_the_source(
    run: Command, judge: Answering, profiling_gives: ProfilingGives, project: Path
) -> None:
    verdict, asked = accepted(), profiling_gives(SEEN)
    judge(verdict)
    ended = run("double", "kernel.py", "--profile", command=submit)
    assert (ended.code, asked) == (0, ["large"])
    [kept] = (project / "leaderboard/archive/double/ada").glob("*.json")
    assert kept.name == f"{verdict.run}.profile.json"
    assert ended.err.splitlines()[-1] == f"profile in {kept.relative_to(project)}"
    document = json.loads(kept.read_bytes())
    assert document["stacks"] == {"CPU time of 3 calls, µs": "twice;add 7\n"}


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (HarnessError("bwrap: was killed"), "kernelmark: warning: no profile: bwrap: was killed"),
        (RuntimeError("a\nbug\x1b"), "kernelmark: warning: no profile: unexpected RuntimeError: a bug\\x1b; traceback"),
        (DEAD, "no profile: torch.profiler: died; its code: late"),
        (KernelProfile("k", TorchProfile(unreadable=["trace 0: not JSON"])), "no profile: trace 0: not JSON"),
    ],
    ids=["ours", "a bug", "it died", "garbage"],
)
def test_a_profile_that_fails_costs_one_line_and_nothing_else(
    run: Command, judge: Answering, profiling_gives: ProfilingGives, project: Path, answer: Any, line: str
) -> None:
    verdict = accepted()
    profiling_gives(answer)
    judge(verdict, verdict.model_copy(update={"run": "f" * 16}))
    ended = run("submit", "double", "kernel.py", "--profile")
    assert ended.code == 0
    assert ended.err.splitlines()[-1].startswith(line)
    plain = run("submit", "double", "kernel.py")
    assert ended.err.splitlines()[:-1] == plain.err.splitlines()
    assert [v.run for v in recorded(project)] == [verdict.run, "f" * 16]
    assert not list(project.glob("leaderboard/archive/*/*/*.json"))


def test_the_ledger_has_the_same_line_with_a_profile(
    run: Command, judge: Answering, profiling_gives: ProfilingGives, project: Path
) -> None:
    profiling_gives(SEEN)
    ledger, verdict, said = project / "leaderboard/results/double.jsonl", accepted(), []
    for option in ([], ["--profile"]):
        judge(verdict)
        said.append((run("submit", "double", "kernel.py", *option).out, ledger.read_bytes()))
        ledger.unlink()
    assert said[0] == said[1]


def test_only_accepted_and_recorded_results_are_profiled(
    run: Command, judge: Answering, profiling_gives: ProfilingGives
) -> None:
    asked = profiling_gives(SEEN)
    judge(failed())
    assert run("submit", "double", "kernel.py", "--profile").code == 1
    fake = judge(accepted(), accepted())
    refused = run("submit", "double", "kernel.py", "--profile", "--no-record")
    assert (refused.code, fake.asked) == (2, [])
    assert refused.err == (
        "kernelmark: error: --profile keeps the profile with the recorded run; use `kernelmark profile` instead\n"
    )
    assert run("submit", "double", "kernel.py").code == 0
    assert asked == []


def test_every_part_of_a_profile_has_its_section() -> None:
    metrics = [
        NsightMetric("GPU Speed Of Light Throughput", "", name, "%", value)
        for name, value in ((nsight.MEMORY, "91.5"), (nsight.ARITHMETIC, "12.0"))
    ]
    whole = KernelProfile(
        "kernel.py",
        TorchProfile(
            traces=[b'{"traceEvents":[]}', b" " * 300_000],
            tables={"operators": "aten::add"},
            memory=[Timeline("GPU", ((0.0, 512), (2.5, 0)))],
        ),
        NsightProfile("2026.2", b"report", "details", "table", [KernelMetrics("doubling", metrics)]),
        CompiledCode(files={"0.ptx": ".target"}),
        {"memcheck": ToolReport("found", "1 error" + "!" * 500, "========= Invalid read")},
        {"torch": "why not"},
    )
    stored = profiling.to_store(whole, accepted(), "large")
    assert stored.rows["Memory that PyTorch held"] == (("device", "most at once (B)"), ("GPU", "512"))
    assert stored.rows["Nsight Compute"][1] == ("doubling", "", "92 %", "12 %", "", "memory")
    assert stored.rows["compute-sanitizer"][1][:2] == ("memcheck", "found")
    assert stored.tables == {"By operator": "aten::add", "Nsight Compute": "details"}
    assert stored.files == {
        "memory-GPU.csv": "us,bytes\n0.0,512\n2.5,0\n",
        "ncu.csv": "table",
        "memcheck.txt": "========= Invalid read",
        "0.ptx": ".target",
        "trace-0.json, for Perfetto": '{"traceEvents":[]}',
    }
    assert stored.missing == ("torch: why not",)
    assert fitted(stored) == stored
