"""`kernelmark grade --changed --only AUTHOR`: a branch may bring its author's own files and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.submission import Submission
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rank
from tests.documents import items, valid
from tests.repository import commit, git, init
from tests.unit.conftest import ROOT, Command
from tests.verdicts import accepted

RIGHT = "def twice(x, y): y.copy_(2 * x)\n"
OWN = "submissions/double/ada/kernel.py"
LEDGER = "leaderboard/results/double.jsonl"


@pytest.fixture
def main(competition: Path) -> Path:
    """A competition with one result of bob's; a branch of ada's with an honest kernel is checked out."""
    shutil.copy(ROOT / ".gitattributes", competition)
    (competition / "submissions/double/bob").mkdir(parents=True)
    (competition / "submissions/double/bob/kernel.py").write_text(RIGHT)
    (competition / "docs").mkdir()
    (competition / "docs/index.md").write_text("text\n" * 20)
    (competition / ".github").mkdir()
    (competition / ".github/CODEOWNERS").write_text("* @teacher\n")
    _append(competition, "bob", ns=9_000)
    init(competition)
    git(competition, "checkout", "-qb", "theirs")
    commit(competition, {OWN: RIGHT})
    return competition


def _append(competition: Path, author: str, ns: int) -> None:
    submission = Submission.of(f"# {author} {ns}\n", "py", author=author, name="kernel.py")
    archive(competition / "leaderboard/archive", "double", submission)
    verdict = accepted(score_ns=ns, submission=submission, problem="double", run=f"{ns:016x}")
    JsonlLedger(competition / LEDGER).append(verdict)


ONLY = ("grade", "--changed", "main", "--head", "theirs", "--only", "ada", "--no-record", "--format", "json")


def test_a_forged_record_is_refused_an_honest_one_not(main: Path, command: Command, graded: list[Submission]) -> None:
    result = command(*ONLY)
    assert (result.code, [item["path"] for item in items(result.out)]) == (0, [OWN])
    graded.clear()
    _append(main, "ada", ns=1_000)
    commit(main, message="forge")
    assert command("verify").code == 0, "a chain is valid, whoever appended to it"
    assert rank(JsonlLedger(main / LEDGER))[0].rows[0].author == "ada"
    git(main, "checkout", "-q", "main")
    for more in ((), ("--allow-other",)):
        result = command(*ONLY, *more)
        assert (result.code, valid(result.out)["error"]["code"], graded) == (2, "usage", [])
        listed = [line.rpartition(" ")[2] for line in result.err.splitlines() if "also changes" in line]
        assert LEDGER in listed
        assert any(path.startswith("leaderboard/archive/double/ada/") for path in listed)
        assert OWN not in listed
        assert result.err.splitlines()[-1].endswith("; leave it out of the branch")
    shown = git(main, "diff", "main...theirs", "--", LEDGER)
    assert '"author":"ada"' in shown, "whoever looks at the branch sees the line"


def test_another_file_needs_permission(main: Path, command: Command, graded: list[Submission]) -> None:
    commit(main, {"docs/index.md": "other\n", "tools/own.sh": "true\n"})
    result = command(*ONLY)
    assert (result.code, graded) == (2, [])
    assert "theirs changes 2 files outside the folders of ada: docs/index.md and 1 more" in result.err
    assert "--allow-other" in result.err
    result = command(*ONLY, "--allow-other")
    assert (result.code, [each.author for each in graded]) == (0, ["ada"])
    notes = [line for line in result.err.splitlines() if "also changes" in line]
    assert [line.rpartition(" ")[2] for line in notes] == ["docs/index.md", "tools/own.sh"]


@pytest.mark.parametrize(
    "path",
    [
        "LeaderBoard/results/double.jsonl",
        "leaderboard/results/new.jsonl",
        "leaderboard/BOARD.md",
        "problems/double/problem.toml",
        "problems",
        "reference/double/eager.py",
        "kernelmark.toml",
        "submissions/kernelmark.toml",
        "docs/CODEOWNERS",
        ".github/workflows/grade.yml",
        ".gitattributes",
        "submissions/double/ada/.gitattributes",
        "submissions/double/Ada/kernel.py",
        "submissions/double/ada",
        "Submissions/double/ada/kernel.py",
        "submissions/double/bob/kernel.py",
    ],
)
def test_files_of_other_authors_are_refused(main: Path, command: Command, graded: list[Submission], path: str) -> None:
    """Also where only the case of a name differs, since some file systems ignore that."""
    (main / path).parent.mkdir(parents=True, exist_ok=True)
    if (main / path).is_dir():
        shutil.rmtree(main / path)
    (main / path).write_text("x\n")
    commit(main)
    git(main, "checkout", "-q", "main")
    result = command(*ONLY, "--allow-other")
    assert (result.code, graded) == (2, [])
    assert path in result.err


def test_a_change_of_any_kind_is_one(main: Path, command: Command, graded: list[Submission]) -> None:
    """Removed, moved away, another mode, a link in place of a folder, a submodule: each is refused, none is missed."""
    before = git(main, "rev-parse", "HEAD").strip()

    def moved() -> None:
        (main / LEDGER).rename(main / "submissions/double/ada/double.md")

    def linked() -> None:
        shutil.rmtree(main / "leaderboard")
        (main / "leaderboard").symlink_to("submissions/double/ada")

    def submodule() -> None:
        (main / ".git/config").open("a").write('[submodule "x"]\n\tignore = all\n')
        git(main, "update-index", "--add", "--cacheinfo", f"160000,{before},tools/other")
        git(main, "commit", "-qm", "submodule")

    changes = {
        "removed": lambda: (main / LEDGER).unlink(),
        "moved": moved,
        "mode": lambda: (main / "docs/index.md").chmod(0o755),
        "linked": linked,
        "submodule": submodule,
    }
    for name, change in changes.items():
        change()
        if name != "submodule":
            commit(main)
        git(main, "checkout", "-q", "main")
        result = command(*ONLY)
        assert (name, result.code, graded) == (name, 2, [])
        git(main, "checkout", "-q", "theirs")
        git(main, "reset", "-q", "--hard", before)


def test_own_files_may_be_moved_and_removed(main: Path, command: Command, graded: list[Submission]) -> None:
    commit(main, {OWN: None, "submissions/double/ada/other.py": RIGHT, "submissions/double/ada/notes.md": "text\n"})
    result = command(*ONLY)
    assert (result.code, [each.name for each in graded]) == (0, ["other.py"])


def test_changes_on_main_are_not_the_branchs(main: Path, command: Command, graded: list[Submission]) -> None:
    git(main, "checkout", "-q", "main")
    commit(main, {"docs/index.md": "newer\n", "problems/double/README.md": "newer\n"})
    assert command(*ONLY).code == 0
    git(main, "checkout", "-q", "theirs")
    git(main, "merge", "-q", "main")
    assert command(*ONLY).code == 0
    assert len(graded) == 2


def test_two_common_ancestors_hide_no_change(main: Path, command: Command, graded: list[Submission]) -> None:
    """After merges in both directions git compares with one common ancestor of several, in which a line may be gone."""
    one = git(main, "rev-parse", "theirs").strip()
    git(main, "checkout", "-q", "main")
    other = commit(main, {"docs/index.md": "main\n"})
    git(main, "merge", "-qm", "theirs", one)
    git(main, "checkout", "-q", "theirs")
    git(main, "merge", "-qm", "main", other)
    result = command(*ONLY)
    assert (result.code, graded) == (2, [])
    assert "rebase the branch" in result.err


def test_a_project_in_a_folder_of_its_repository(
    main: Path, command: Command, graded: list[Submission], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(main, whole / "project", ignore=shutil.ignore_patterns(".git"))
    init(whole)
    git(whole, "checkout", "-qb", "theirs")
    monkeypatch.chdir(whole / "project")
    commit(whole, {f"project/{OWN}": f"# other\n{RIGHT}"})
    assert command(*ONLY).code == 0
    commit(whole, {"leaderboard/x": "not the project's\n"})
    result = command(*ONLY)
    assert (result.code, "leaderboard/x" in result.err) == (2, True)
    assert command(*ONLY, "--allow-other").code == 0
    commit(whole, {f"project/{LEDGER}": "forged\n"})
    assert command(*ONLY, "--allow-other").code == 2


def test_others_are_allowed_to_one_author_alone(main: Path, command: Command) -> None:
    result = command("grade", "--changed", "main", "--allow-other")
    assert (result.code, "--allow-other goes with --only" in result.err) == (2, True)
