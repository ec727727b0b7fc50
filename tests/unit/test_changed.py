"""`grade --changed`: exactly the branch's own files, by the folder's author, read from git instead of the checkout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from harness.submission import Submission
from harness.verdict import Outcome
from kernelmark.course.marks import Reports
from kernelmark.course.report import GradingResult, junit, summary, worst
from tests.documents import items
from tests.repository import commit, git, init
from tests.unit.conftest import Command, Said, recorded
from tests.verdicts import failed

RIGHT = "def twice(x, y): y.copy_(2 * x)\n"


class Branch(NamedTuple):
    """The project of a course in git, and who was graded of what its branch hands in."""

    folder: Path
    command: Command
    graded: list[Submission]
    base: str

    def commit(self, files: dict[str, str | None], message: str = "change") -> str:
        return commit(self.folder, files, message)

    def hands_in(self, **sources: str) -> None:
        """Commit a kernel of each author."""
        self.commit({f"submissions/double/{author}/kernel.py": source for author, source in sources.items()})

    def grade(self, *options: str) -> Said:
        return self.command("grade", "--changed", self.base, *options)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def counts(self, name: str = "j.xml") -> list[str | None]:
        """What JUnit's file counts: tests, failures and errors."""
        suites = ElementTree.fromstring(self.read(name))
        return [suites.get(count) for count in ("tests", "failures", "errors")]


@pytest.fixture
def branch(competition: Path, command: Command, graded: list[Submission]) -> Branch:
    (competition / "submissions/double/old").mkdir(parents=True)
    (competition / "submissions/README.md").write_text("put it here\n")
    (competition / "submissions/double/old/kernel.py").write_text(RIGHT + "# old\n" * 30)
    return Branch(competition, command, graded, init(competition))


def test_exactly_the_added_and_changed_files_are_graded(branch: Branch) -> None:
    branch.commit(
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
    (branch.folder / "submissions/double/ada/kernel.py").write_text("not what was committed\n")
    result = branch.grade("--summary", "out/s.md", "--junit", "out/j.xml")
    assert result.code == 1, "the worst of accepted, wrong answer, accepted"
    handed_in = [("ada", "kernel.py"), ("bob", "mine.cu"), ("old", "moved.py")]
    assert [(each.author, each.name) for each in branch.graded] == handed_in
    assert branch.graded[0].source.startswith(RIGHT.encode())
    assert [verdict.submission.author for verdict in recorded(branch.folder)] == ["ada", "bob", "old"]
    assert "| ada | kernel.py |" in branch.read("leaderboard/boards/double.md")
    text = branch.read("out/s.md").replace("\\", "")
    assert "| submissions/double/ada/kernel.py | accepted |" in text
    assert "| submissions/double/bob/mine.cu | wrong answer |" in text
    assert branch.counts("out/j.xml") == ["3", "1", "0"]


def test_the_branch_that_hands_in_need_not_be_checked_out(branch: Branch) -> None:
    git(branch.folder, "checkout", "-qb", "theirs")
    branch.commit({"submissions/double/ada/kernel.py": RIGHT, "kernelmark.toml": "sandbox = 'none such'\n"})
    git(branch.folder, "checkout", "-q", "main")
    branch.commit({"submissions/double/zoe/kernel.py": RIGHT}, "main goes on")
    result = branch.command("grade", "--changed", "main", "--head", "theirs", "--no-record")
    assert (result.code, [each.author for each in branch.graded]) == (0, ["ada"])
    assert not (branch.folder / "leaderboard").exists()


def test_a_branch_without_submissions_is_no_error(branch: Branch) -> None:
    result = branch.grade("--summary", "s.md")
    assert (result.code, result.out) == (0, "no submission was added or changed\n")
    assert "No submission was added or changed." in branch.read("s.md")


def test_text_files_are_skipped_but_a_possible_kernel_is_not(branch: Branch) -> None:
    files = {"ada/kernel.py": RIGHT, "ada/README.md": "how it works", "old/notes.txt": "unchanged kernel"}
    folder = {"eve/fast/fast.py": RIGHT, "eve/notes.md": "see fast"}
    branch.commit({f"submissions/double/{path}": content for path, content in (files | folder).items()})
    result = branch.grade("--no-record")
    assert (result.code, [each.author for each in branch.graded]) == (0, ["ada", "eve"])
    notes = [line for line in result.err.splitlines() if "note" in line]
    assert notes == [
        f"kernelmark: note: submissions/double/{path}: passed over, as it is not a kernel"
        for path in ("ada/README.md", "eve/notes.md", "old/notes.txt")
    ]
    branch.commit({"submissions/double/ada/kernel.cuda": RIGHT}, "an unknown suffix")
    result = branch.grade("--no-record")
    assert (result.code, "unknown language '.cuda'" in result.out) == (2, True)


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("submissions/double/kernel.py", RIGHT, "is not where submissions belong"),
        ("submissions/double/ada/deep/kernel.py", RIGHT, "is not where submissions belong"),
        ("submissions/doubel/ada/kernel.py", RIGHT, "did you mean `double`?"),
        ("submissions/double/ada/kernel.txt", RIGHT, "unknown language '.txt'"),
        ("submissions/double/.ada/kernel.py", RIGHT, "is not a valid name"),
        ("submissions/double/ada/kernel.py", "x" * ((1 << 20) + 1), "is larger than"),
        ("submissions/double/ada/kernel.py", "a\0b", "NUL"),
    ],
)
def test_an_invalid_submission_does_not_stop_the_others(branch: Branch, path: str, content: str, why: str) -> None:
    branch.commit({path: content, "submissions/double/zoe/kernel.py": RIGHT})
    said = branch.grade("--format", "json")
    assert said.code == 2
    assert [each.author for each in branch.graded] == ["zoe"]
    results = {item["path"]: item for item in items(said.out)}
    refused = results.pop(path)
    assert (refused["exit_code"], refused["verdict"]) == (2, None)
    assert why in refused["message"]
    assert [result["exit_code"] for result in results.values()] == [0]


@pytest.mark.parametrize(
    "path",
    ["submissions/double/ada/kernel.py", "submissions/double/ada", "submissions/double",
     "submissions/double/old/kernel.py", "submissions/double/ada/fast/tiling.py"],
)  # fmt: skip
def test_a_symbolic_link_is_refused(branch: Branch, path: str) -> None:
    link = branch.folder / path
    if path in ("submissions/double", "submissions/double/old/kernel.py"):
        git(branch.folder, "rm", "-rq", path)
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.parent.name == "fast":
        (link.parent / "fast.py").write_text(RIGHT)
    link.symlink_to("/etc/passwd")
    branch.commit({})
    result = branch.grade()
    assert (result.code, branch.graded) == (2, [])
    assert ("is a symbolic link" in result.out) == (link.suffix == ".py")


def test_a_folder_with_a_file_of_its_name_is_one_submission(branch: Branch) -> None:
    folder = "submissions/double/ada/fast"
    files = {"fast.cpp": '#include "common.h"\n', "fast.h": "// own\n", "common.h": "// 1\n"}
    before = branch.commit({f"{folder}/{name}": content for name, content in files.items()})
    assert branch.grade().code == 0
    after = branch.commit({f"{folder}/common.h": "// 2\n", f"{folder}/fast.h": None}, "only headers")
    result = branch._replace(base=before).grade("--format", "json")
    assert [(item["path"], item["exit_code"]) for item in items(result.out)] == [(f"{folder}/fast.cpp", 0)]
    beside = [(("common.h", b"// 1\n"), ("fast.h", b"// own\n")), (("common.h", b"// 2\n"),)]
    assert [(each.author, each.name, each.source, each.beside) for each in branch.graded] == [
        ("ada", "fast.cpp", files["fast.cpp"].encode(), each) for each in beside
    ]
    branch.commit({f"{folder}/{name}": None for name in ("fast.cpp", "common.h")}, "all gone")
    assert "no submission was added or changed" in branch._replace(base=after).grade().out


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("README.md", "text", "cannot lie beside a .py submission"),
        ("torch.py", "", "in place of the module `torch`"),
        ("deeper/x.py", "", "is not a file"),
        ("large.py", "#" * ((1 << 20) - 8), "with the files beside it is larger than"),
    ],
)
def test_a_folder_with_a_disallowed_file_is_refused(branch: Branch, name: str, content: str, why: str) -> None:
    folder = "submissions/double/ada/fast"
    branch.commit({f"{folder}/fast.py": RIGHT, f"{folder}/{name}": content})
    result = branch.grade()
    assert (result.code, branch.graded) == (2, [])
    assert why in result.out


def test_with_only_nobody_can_submit_for_another_author(branch: Branch) -> None:
    branch.hands_in(ada=RIGHT, mallory=RIGHT)
    result = branch.grade("--only", "mallory")
    assert (result.code, branch.graded) == (2, [])
    assert "outside the folders of mallory: submissions/double/ada/kernel.py; leave it out" in result.err


def test_a_harness_failure_decides_the_exit_status_and_stops_no_other_grading(branch: Branch) -> None:
    branch.hands_in(ada="# broken\n", bob="# wrong\n")
    result = branch.grade("--junit", "j.xml")
    assert result.code == 7
    assert [each.author for each in branch.graded] == ["ada", "ada", "bob"], "ours is tried once more"
    assert branch.counts() == ["2", "1", "1"]
    assert [verdict.submission.author for verdict in recorded(branch.folder)] == ["bob"]


def test_an_unexpected_error_ends_one_grading_and_no_other(branch: Branch) -> None:
    branch.hands_in(ada="# unforeseen\n", bob=RIGHT)
    result = branch.grade("--summary", "s.md", "--junit", "j.xml")
    assert (result.code, [each.author for each in branch.graded]) == (7, ["ada", "bob"])
    found = re.search(r"our fault: unexpected BlockingIOError: .* unavailable; traceback in (\S+)$", result.out, re.M)
    assert found
    kept = Path(found[1])
    assert "in grade\n" in kept.read_text()
    kept.unlink()
    assert branch.counts() == ["2", "0", "1"]
    rows = [line for line in branch.read("s.md").splitlines() if line.startswith("| submissions")]
    assert [("our fault" in row, "accepted" in row) for row in rows] == [(True, False), (False, True)]
    assert [verdict.submission.author for verdict in recorded(branch.folder)] == ["bob"]


def test_after_an_interruption_the_reports_still_name_every_submission(branch: Branch) -> None:
    branch.hands_in(ada=RIGHT, bob="# interrupted\n", eve=RIGHT)
    result = branch.grade("--format", "json", "--junit", "j.xml")
    assert [each.author for each in branch.graded] == ["ada", "bob"]
    assert [item["exit_code"] for item in items(result.out)] == [0, 130, 130]
    assert branch.counts() == ["3", "0", "2"]


def test_a_deadline_applies_to_changed_files_too(branch: Branch) -> None:
    toml = "problems/double/problem.toml"
    (branch.folder / toml).write_text("deadline = 2020-01-01T00:00:00Z\n" + branch.read(toml))
    branch.hands_in(ada=RIGHT)
    result = branch.grade()
    assert (result.code, branch.graded) == (2, [])
    assert "takes no more submissions, closed since 2020-01-01 00:00 UTC" in result.out
    assert branch.grade("--late", "grace").code == 0
    assert "| late | ada |" in branch.read("leaderboard/BOARD.md")


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


def test_a_summary_that_cannot_be_written_is_refused_before_anything_is_graded(branch: Branch) -> None:
    branch.hands_in(zoe=RIGHT)
    result = branch.grade("--summary", "kernelmark.toml/summary.md")
    assert (result.code, result.out, "kernelmark.toml/summary.md cannot be written in" in result.err) == (2, "", True)


def test_results_are_printed_without_a_writable_summary(branch: Branch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reports, "refuse_unwritable", lambda _: None)  # as if the folder had gone meanwhile
    branch.hands_in(zoe=RIGHT)
    result = branch.grade("--format", "json", "--summary", "kernelmark.toml/summary.md")
    assert (result.code, "kernelmark.toml/summary.md cannot be written (" in result.err) == (2, True)
    assert [item["path"] for item in items(result.out)] == ["submissions/double/zoe/kernel.py"]


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
def test_a_commit_that_git_does_not_know_is_refused(branch: Branch, args: tuple[str, ...], message: str) -> None:
    """git reads an empty name, as of an unset variable, as HEAD: nothing would ever be handed in."""
    result = branch.command("grade", *args)
    assert (result.code, message in result.err, result.err.count("\n")) == (2, True, 1)
    assert not (branch.folder / "x").exists()


def test_the_error_says_that_this_is_no_git_repository(competition: Path, command: Command) -> None:
    result = command("grade", "--changed", "HEAD")
    assert result.code == 2
    assert "not a git repository" in result.err
    assert result.err.endswith("; run it in a clone of the project\n")
