"""What a branch hands in: exactly its own files, by the folder's author, read from git and not from the checkout."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.submission import Submission
from harness.verdict import Outcome
from kernelmark.course.report import GradingResult, junit, summary, worst
from leaderboard.record.ledger import JsonlLedger
from tests.repository import commit, git, init
from tests.unit.conftest import Command
from tests.verdicts import failed

RIGHT = "def twice(x, y): y.copy_(2 * x)\n"


@pytest.fixture
def base(competition: Path) -> str:
    (competition / "submissions").mkdir()
    (competition / "submissions/README.md").write_text("put it here\n")
    (competition / "submissions/double/old").mkdir(parents=True)
    (competition / "submissions/double/old/kernel.py").write_text(RIGHT + "# old\n" * 30)
    return init(competition)


def test_exactly_what_was_added_or_changed_is_graded(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    commit(
        competition,
        {
            "submissions/double/ada/kernel.py": RIGHT + "AUTHOR = 'mallory'\n",
            "submissions/double/bob/mine.cu": "// wrong\n",
            "submissions/README.md": "changed\n",
            "submissions/double/old/kernel.py": None,
            "submissions/double/old/moved.py": RIGHT + "# old\n" * 30,
            "elsewhere/double/eve/kernel.py": RIGHT,
            "kernelmark.toml": 'author = "mallory"\ndevice = "cpu"\nsandbox = "process"\n',
        },
    )
    (competition / "submissions/double/ada/kernel.py").write_text("not what was committed\n")
    said = command("grade", "--changed", base, "--summary", "out/s.md", "--junit", "out/j.xml")
    assert said.code == 1, "the worst of accepted, wrong answer, accepted"
    assert [(each.author, each.name) for each in graded] == [
        ("ada", "kernel.py"), ("bob", "mine.cu"), ("old", "moved.py"),
    ]  # fmt: skip
    assert graded[0].source.startswith(RIGHT.encode())
    recorded = [entry.verdict.submission.author for entry in JsonlLedger(_ledger(competition)).read()]
    assert recorded == ["ada", "bob", "old"]
    assert "| ada | kernel.py |" in (competition / "leaderboard/boards/double.md").read_text()
    text = (competition / "out/s.md").read_text()
    assert "| submissions/double/ada/kernel.py | accepted |" in text.replace("\\", "")
    assert "| submissions/double/bob/mine.cu | wrong answer |" in text.replace("\\", "")
    suites = ElementTree.parse(competition / "out/j.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("3", "1", "0")


def _ledger(competition: Path) -> Path:
    return competition / "leaderboard/results/double.jsonl"


def test_the_branch_that_hands_in_need_not_be_checked_out(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    git(competition, "checkout", "-qb", "theirs")
    commit(competition, {"submissions/double/ada/kernel.py": RIGHT, "kernelmark.toml": "sandbox = 'none such'\n"})
    git(competition, "checkout", "-q", "main")
    commit(competition, {"submissions/double/zoe/kernel.py": RIGHT}, "main goes on")
    said = command("grade", "--changed", "main", "--head", "theirs", "--no-record")
    assert (said.code, [each.author for each in graded]) == (0, ["ada"])
    assert not (competition / "leaderboard").exists()


def test_nothing_handed_in_is_no_fault(competition: Path, base: str, command: Command) -> None:
    said = command("grade", "--changed", base, "--summary", "s.md")
    assert (said.code, said.out) == (0, "no submission was added or changed\n")
    assert "No submission was added or changed." in (competition / "s.md").read_text()


def test_a_text_beside_a_kernel_is_passed_over_and_what_could_be_a_kernel_is_not(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    files = {"ada/kernel.py": RIGHT, "ada/README.md": "how it works", "old/notes.txt": "unchanged kernel"}
    folder = {"eve/fast/fast.py": RIGHT, "eve/notes.md": "see fast"}
    commit(competition, {f"submissions/double/{path}": content for path, content in (files | folder).items()})
    said = command("grade", "--changed", base, "--no-record")
    assert (said.code, [each.author for each in graded]) == (0, ["ada", "eve"])
    notes = [line for line in said.err.splitlines() if "note" in line]
    assert notes == [
        f"kernelmark: note: submissions/double/{path}: passed over, as it is not a kernel"
        for path in ("ada/README.md", "eve/notes.md", "old/notes.txt")
    ]
    commit(competition, {"submissions/double/ada/kernel.cuda": RIGHT}, "an unknown suffix")
    said = command("grade", "--changed", base, "--no-record")
    assert (said.code, "unknown language '.cuda'" in said.out) == (2, True)


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("submissions/kernel.py", RIGHT, "is not where submissions belong"),
        ("submissions/double/kernel.py", RIGHT, "is not where submissions belong"),
        ("submissions/double/ada/deep/kernel.py", RIGHT, "is not where submissions belong"),
        ("submissions/doubel/ada/kernel.py", RIGHT, "did you mean `double`?"),
        ("submissions/double/ada/kernel.txt", RIGHT, "unknown language '.txt'"),
        ("submissions/double/.ada/kernel.py", RIGHT, "is not a valid name"),
        ("submissions/double/ada/kernel.py", "x" * ((1 << 20) + 1), "is larger than"),
        ("submissions/double/ada/kernel.py", "a\0b", "NUL"),
    ],
)
def test_what_cannot_be_graded_is_told_and_the_others_are_graded(
    competition: Path, base: str, graded: list[Submission], command: Command, path: str, content: str, why: str
) -> None:
    commit(competition, {path: content, "submissions/double/zoe/kernel.py": RIGHT})
    said = command("grade", "--changed", base, "--format", "json")
    assert said.code == 2
    assert [each.author for each in graded] == ["zoe"]
    results = {each["path"]: each for each in json.loads(said.out)}
    refused = results.pop(path)
    assert (refused["exit_code"], refused["verdict"]) == (2, None)
    assert why in refused["message"]
    assert [each["exit_code"] for each in results.values()] == [0]


@pytest.mark.parametrize("path", ["submissions/double/ada/kernel.py", "submissions/double/ada", "submissions/double"])
def test_a_symbolic_link_is_refused(
    competition: Path, base: str, graded: list[Submission], command: Command, path: str
) -> None:
    secret = competition / "secret.py"
    secret.write_text(RIGHT)
    link = competition / path
    if path == "submissions/double":
        git(competition, "rm", "-rq", path)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(secret)
    commit(competition)
    said = command("grade", "--changed", base)
    assert (said.code, graded) == (2, [])


def test_a_file_that_became_a_link_is_refused(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    file = competition / "submissions/double/old/kernel.py"
    file.unlink()
    file.symlink_to("/etc/passwd")
    commit(competition)
    said = command("grade", "--changed", base)
    assert (said.code, graded) == (2, [])
    assert "is a symbolic link" in said.out


def test_a_folder_with_a_file_of_its_name_is_one_submission(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    folder = "submissions/double/ada/fast"
    files = {"fast.cpp": '#include "common.h"\n', "fast.h": "// own\n", "common.h": "// 1\n"}
    before = commit(competition, {f"{folder}/{name}": content for name, content in files.items()})
    assert command("grade", "--changed", base).code == 0
    after = commit(competition, {f"{folder}/common.h": "// 2\n", f"{folder}/fast.h": None}, "only headers")
    said = command("grade", "--changed", before, "--format", "json")
    assert [(each["path"], each["exit_code"]) for each in json.loads(said.out)] == [(f"{folder}/fast.cpp", 0)]
    assert [(each.author, each.name) for each in graded] == [("ada", "fast.cpp")] * 2
    assert [each.beside for each in graded] == [
        (("common.h", b"// 1\n"), ("fast.h", b"// own\n")),
        (("common.h", b"// 2\n"),),
    ]
    assert {each.source for each in graded} == {files["fast.cpp"].encode()}
    commit(competition, {f"{folder}/{name}": None for name in ("fast.cpp", "common.h")}, "all gone")
    assert "no submission was added or changed" in command("grade", "--changed", after).out


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("README.md", "text", "cannot lie beside a .py submission"),
        ("torch.py", "", "in place of the module `torch`"),
        ("deeper/x.py", "", "is not a file"),
        ("large.py", "#" * ((1 << 20) - 8), "with the files beside it is larger than"),
    ],
)
def test_a_folder_with_a_file_that_cannot_lie_there_is_refused(
    competition: Path, base: str, graded: list[Submission], command: Command, name: str, content: str, why: str
) -> None:
    folder = "submissions/double/ada/fast"
    commit(competition, {f"{folder}/fast.py": RIGHT, f"{folder}/{name}": content})
    said = command("grade", "--changed", base)
    assert (said.code, graded) == (2, [])
    assert why in said.out


def test_a_link_in_a_folder_is_refused(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    folder = competition / "submissions/double/ada/fast"
    folder.mkdir(parents=True)
    (folder / "fast.py").write_text(RIGHT)
    (folder / "tiling.py").symlink_to("/etc/passwd")
    commit(competition)
    said = command("grade", "--changed", base)
    assert (said.code, graded) == (2, [])
    assert "tiling.py is a symbolic link" in said.out


def test_only_lets_nobody_hand_in_for_somebody_else(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    commit(competition, {"submissions/double/ada/kernel.py": RIGHT, "submissions/double/mallory/kernel.py": RIGHT})
    said = command("grade", "--changed", base, "--only", "mallory")
    assert (said.code, graded) == (2, [])
    assert "outside the folders of mallory: submissions/double/ada/kernel.py; leave it out" in said.err


def test_our_own_failure_is_the_worst_and_stops_nothing(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    commit(
        competition, {"submissions/double/ada/kernel.py": "# broken\n", "submissions/double/bob/kernel.py": "# wrong\n"}
    )
    said = command("grade", "--changed", base, "--junit", "j.xml")
    assert said.code == 7
    assert [each.author for each in graded] == ["ada", "ada", "bob"], "ours is tried once more"
    suites = ElementTree.parse(competition / "j.xml").getroot()
    assert (suites.get("failures"), suites.get("errors")) == ("1", "1")
    assert [entry.verdict.submission.author for entry in JsonlLedger(_ledger(competition)).read()] == ["bob"]


def test_an_error_that_nobody_foresaw_ends_one_turn_and_no_other(
    competition: Path, base: str, graded: list[Submission], command: Command, tmp_path: Path
) -> None:
    commit(
        competition, {"submissions/double/ada/kernel.py": "# unforeseen\n", "submissions/double/bob/kernel.py": RIGHT}
    )
    said = command("grade", "--changed", base, "--summary", "s.md", "--junit", "j.xml")
    assert (said.code, [each.author for each in graded]) == (7, ["ada", "bob"])
    found = re.search(r"our fault: unexpected BlockingIOError: .* unavailable; traceback in (\S+)$", said.out, re.M)
    assert found
    kept = Path(found[1])
    assert "in grade\n" in kept.read_text()
    kept.unlink()
    suites = ElementTree.parse(competition / "j.xml").getroot()
    assert [suites.get(count) for count in ("tests", "failures", "errors")] == ["2", "0", "1"]
    rows = [line for line in (competition / "s.md").read_text().splitlines() if line.startswith("| submissions")]
    assert [("our fault" in row, "accepted" in row) for row in rows] == [(True, False), (False, True)]
    assert [entry.verdict.submission.author for entry in JsonlLedger(_ledger(competition)).read()] == ["bob"]


def test_an_interruption_ends_the_run_and_the_reports_name_every_hand_in(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    files = {"ada": RIGHT, "bob": "# interrupted\n", "eve": RIGHT}
    commit(competition, {f"submissions/double/{author}/kernel.py": source for author, source in files.items()})
    said = command("grade", "--changed", base, "--format", "json", "--junit", "j.xml")
    assert [each.author for each in graded] == ["ada", "bob"]
    assert [each["exit_code"] for each in json.loads(said.out)] == [0, 7, 7]
    suites = ElementTree.parse(competition / "j.xml").getroot()
    assert [suites.get(count) for count in ("tests", "errors")] == ["3", "2"]


def test_a_deadline_closes_this_way_in_too(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    toml = competition / "problems/double/problem.toml"
    toml.write_text("deadline = 2020-01-01T00:00:00Z\n" + toml.read_text())
    commit(competition, {"submissions/double/ada/kernel.py": RIGHT})
    said = command("grade", "--changed", base)
    assert (said.code, graded) == (2, [])
    assert "takes no more submissions, closed since 2020-01-01 00:00 UTC" in said.out
    assert command("grade", "--changed", base, "--late", "grace").code == 0
    assert "| late | ada |" in (competition / "leaderboard/BOARD.md").read_text()


def test_a_kernel_that_only_a_gpu_can_run_fails_no_build() -> None:
    unsupported = GradingResult("a.py", 8, "grade it on a GPU", failed(Outcome.UNSUPPORTED))
    wrong, ours = (
        GradingResult("b.py", 1, "wrong", failed(Outcome.WRONG_ANSWER)),
        GradingResult("c.py", 7, "no daemon"),
    )
    suites = ElementTree.fromstring(junit([unsupported, wrong, ours]))
    counts = [suites.get(kind) for kind in ("tests", "failures", "errors", "skipped")]
    assert counts == ["3", "1", "1", "1"]
    (skipped,) = suites.iter("skipped")
    assert skipped.get("message") == "grade it on a GPU"
    assert [worst(each) for each in ([], [unsupported], [unsupported, wrong], [unsupported, ours])] == [0, 8, 1, 7]


def test_hostile_text_stays_text_in_both_reports() -> None:
    message = "a\x1b[2J]]></failure><script>|`\ufffe\n## heading"
    results = [
        GradingResult("submissions/double/ada/</x>|`a`.py", 4, message, failed(Outcome.RUNTIME_ERROR, message=message)),
        GradingResult("b.py", 2, message),
    ]
    root = ElementTree.fromstring(junit(results))
    assert [case.get("name") for case in root.iter("testcase")] == ["x>|`a`.py", "b.py"]
    (wrong,) = root.iter("failure")
    assert wrong.text is not None
    assert "]]></failure><script>" in wrong.text
    text = summary(results)
    assert not [line for line in text.splitlines() if line.startswith("## heading")]
    quoted = [line for line in text.splitlines() if "<script>" in line]
    assert quoted
    assert all(line.startswith("    ") for line in quoted), "as code, and nowhere else"


def test_where_the_summary_cannot_be_written_the_results_are_told_all_the_same(
    competition: Path, base: str, graded: list[Submission], command: Command
) -> None:
    commit(competition, {"submissions/double/zoe/kernel.py": RIGHT})
    said = command("grade", "--changed", base, "--format", "json", "--summary", "kernelmark.toml/summary.md")
    assert (said.code, "kernelmark.toml/summary.md cannot be written (" in said.err) == (2, True)
    assert [each["path"] for each in json.loads(said.out)] == ["submissions/double/zoe/kernel.py"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--changed", ""), "--changed is empty; name a commit or a branch"),
        (("--changed", "HEAD", "--head", ""), "--head is empty; name a commit or a branch"),
        (("--changed", "absent"), "bad revision 'absent...HEAD'; fetch both"),
        (("--changed", "--output=x"), "bad revision '--output=x...HEAD'"),
        (("--changed", "main", "--head", "nonsense"), "bad revision 'main...nonsense'"),
    ],
)
def test_a_commit_that_git_does_not_know_is_refused(
    competition: Path, base: str, command: Command, args: tuple[str, ...], message: str
) -> None:
    """git reads an empty name, as of an unset variable, as HEAD: nothing would ever be handed in."""
    said = command("grade", *args)
    assert (said.code, message in said.err, said.err.count("\n")) == (2, True, 1)
    assert not (competition / "x").exists()


def test_outside_of_a_repository_that_is_what_is_said(competition: Path, command: Command) -> None:
    said = command("grade", "--changed", "HEAD")
    assert said.code == 2
    assert "not a git repository" in said.err
    assert said.err.endswith("; run it in a clone of the project\n")
