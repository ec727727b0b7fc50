"""The shipped workflows: what a stranger's pull request may never get, and the script that commits a record."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.submission import Submission
from kernelmark.course.report import GradingResult, junit
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from tests.repository import commit, git, init
from tests.unit.conftest import ROOT
from tests.verdicts import accepted

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def job(name: str) -> str:
    text = (ROOT / ".github/workflows/grade.yml").read_text()
    (found,) = re.findall(rf"^  {name}:\n((?:    .*\n|\n)*)", text, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_begins_with_no_permission_and_pins_what_it_uses(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
    assert "pull_request_target" not in text
    assert "secrets." not in text
    uses = re.findall(r"uses: (\S+)", text)
    assert uses
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action) for action in uses)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nothing_that_a_stranger_names_is_pasted_into_a_script(path: Path) -> None:
    for line in path.read_text().splitlines():
        if "${{" in line:
            assert re.match(r"\s+[\w-]+: ", line), line
            assert not re.match(r"\s+(- )?run:", line), line


def test_the_job_of_a_pull_request_gets_nothing_and_checks_nothing_of_it_out() -> None:
    text = job("try")
    assert "\n    permissions: {}\n" in text
    assert re.findall(r"uses: actions/([a-z-]+)@", text) == ["upload-artifact"], (
        "the token, which may do nothing, is given"
    )
    assert text.index("uses:") > text.index("--no-record"), "to nothing that runs before the grading"
    assert 'git checkout -q --detach "$BASE"' in text
    assert "--no-record" in text
    assert '--only "$AUTHOR"' in text
    assert "--sandbox docker" in text


def test_the_job_that_may_write_runs_nothing_of_the_repository_and_installs_nothing() -> None:
    for reading in (job("grade"), job("record")):
        assert "\n    permissions:\n      contents: read\n    " in reading
        assert "write" not in reading
        assert "persist-credentials: false" in reading
    publishing = job("publish")
    assert "contents: write" in publishing
    assert "self-hosted" not in publishing
    assert not re.search(r"\b(pip|npm|curl|python3?|kernelmark|make)\b|tools/", publishing)


def test_a_submission_runs_no_other_workflow_and_a_problem_is_linted() -> None:
    on = {path.stem: yaml.safe_load(path.read_text())[True].get("pull_request", "no") for path in WORKFLOWS}
    assert on["ci"] == {"paths-ignore": ["submissions/**"]}
    assert on["problems"] == {"paths": ["problems/*/**"]}
    assert on["grade"] == {"paths": ["submissions/**", "leaderboard/**"]}
    assert on["demo"] == on["release"] == "no"


def test_an_annotation_is_one_command_whatever_a_stranger_writes(tmp_path: Path) -> None:
    hostile = "a%0A\n::error::b\r\n::set-output name=x::y,z:"
    results = [GradingResult(f"submissions/d/a/{hostile}.py", 1, hostile), GradingResult("submissions/d/b/k.py", 0, "")]
    (tmp_path / "junit.xml").write_bytes(junit(results))
    annotated = subprocess.run(
        [ROOT / "tools/annotate", tmp_path / "junit.xml"], capture_output=True, text=True, check=True
    )
    first, second = annotated.stdout.splitlines()
    assert second == "::notice file=submissions/d/b/k.py,title=accepted::accepted"
    found = re.fullmatch(r"::error file=([^,:\n\r]*),title=our fault::([^\n\r]*)", first)
    assert found is not None
    message = found[2]
    assert message == hostile.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


@pytest.mark.parametrize(
    ("status", "codes", "fails"),
    [(0, [], False), (0, [0], False), (6, [6, 1], False), (2, [2, 0], True), (4, [4, 2], True), (2, [], True)],
)
def test_a_missing_verdict_fails_the_job(tmp_path: Path, status: int, codes: list[int], fails: bool) -> None:
    _, _, after = job("grade").partition("- name: fail where something was not graded\n        run: |\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/status").write_text(f"{status}\n")
    (tmp_path / "build/junit.xml").write_bytes(
        junit([GradingResult("submissions/a/b/c.py", code, "why") for code in codes])
    )
    assert (subprocess.run(["bash", "-ec", after], cwd=tmp_path, check=False).returncode != 0) == fails


@pytest.fixture
def remote(competition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare repository that `competition` is a checkout of, with one result of ada's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "kernelmark"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -c '
        '"from kernelmark.commands.scripts import main; main()" "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (competition / "tools").mkdir()
    shutil.copy(ROOT / "tools/take-recorded", competition / "tools")
    (competition / ".gitignore").write_text("/build/\n")
    result(competition, "ada")
    init(competition)
    bare = tmp_path / "remote.git"
    git(tmp_path, "clone", "-q", "--bare", str(competition), str(bare))
    git(competition, "remote", "add", "origin", str(bare))
    return bare


def result(project: Path, author: str) -> None:
    submission = Submission.of(f"# {author}\n", "py", author=author, name="kernel.py")
    verdict = accepted(submission=submission, problem="double", run=f"{sum(author.encode()):016x}")
    archive(project / "leaderboard/archive", "double", submission)
    JsonlLedger(project / "leaderboard/results/double.jsonl").append(verdict)


def take(competition: Path) -> subprocess.CompletedProcess[str]:
    command = ["tools/take-recorded", "build/recorded", "build/commit/record.bundle"]
    return subprocess.run(command, cwd=competition, capture_output=True, text=True, check=False)


def push(competition: Path, remote: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The step of the job that may write, in a checkout of its own; it has the bundle of the job before it."""
    (script,) = re.findall(r"- name: push the record\n        run: \|\n((?:          .*\n)*)", job("publish"))
    checkout = tmp_path / "publishing"
    shutil.rmtree(checkout, ignore_errors=True)
    git(tmp_path, "clone", "-q", str(remote), str(checkout))
    environment = {
        **os.environ,
        "BUNDLE": str(competition / "build/commit/record.bundle"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    run = ["bash", "-ec", re.sub("^ {10}", "", script, flags=re.MULTILINE)]
    return subprocess.run(run, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def authors(bare: Path, tmp_path: Path) -> list[str]:
    checkout = tmp_path / "look"
    shutil.rmtree(checkout, ignore_errors=True)
    git(tmp_path, "clone", "-q", str(bare), str(checkout))
    ledger = JsonlLedger(checkout / "leaderboard/results/double.jsonl")
    found = [entry.verdict.submission.author for entry in ledger.read()]
    board = (checkout / "leaderboard/BOARD.md").read_text()
    assert all(f"| {author} |" in board for author in found)
    assert {path.name for path in (checkout / "leaderboard/archive/double").iterdir()} == set(found)
    return found


def recorded(competition: Path, author: str) -> None:
    """What a grading job leaves behind that began with what is checked out now."""
    folder = competition / "build/recorded"
    for name in ("leaderboard",):
        shutil.copytree(competition / name, folder / name)
    result(folder, author)


@pytest.fixture(autouse=True)
def _git_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "scratch")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "scratch@example.org")


def test_a_record_is_pushed_also_when_the_branch_has_moved_on(competition: Path, remote: Path, tmp_path: Path) -> None:
    recorded(competition, "bob")
    assert take(competition).returncode == 0
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(remote), str(other))
    commit(other, {"submissions/double/eve/kernel.py": "# eve\n"})
    git(other, "push", "-q")
    done = push(competition, remote, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(authors(remote, tmp_path)) == ["ada", "bob"]
    assert (tmp_path / "look/submissions/double/eve/kernel.py").exists()
    shutil.rmtree(competition / "build")
    git(competition, "fetch", "-q", "origin", "main")
    git(competition, "reset", "-q", "--hard", "FETCH_HEAD")
    recorded(competition, "eve")
    shutil.rmtree(competition / "build/recorded/leaderboard")
    assert "nothing new was recorded" in take(competition).stdout
    assert push(competition, remote, tmp_path).stdout == "nothing new was recorded\n"


def test_a_record_is_merged_with_what_was_recorded_meanwhile(competition: Path, remote: Path, tmp_path: Path) -> None:
    recorded(competition, "bob")
    for author in ("eve", "zoe"):
        result(competition, author)
    commit(competition)
    git(competition, "push", "-q", "origin", "HEAD:main")
    assert take(competition).returncode == 0
    done = push(competition, remote, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(authors(remote, tmp_path)) == ["ada", "bob", "eve", "zoe"]


def test_a_record_that_another_one_has_overtaken_is_not_pushed(competition: Path, remote: Path, tmp_path: Path) -> None:
    recorded(competition, "bob")
    assert take(competition).returncode == 0
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(remote), str(other))
    result(other, "eve")
    commit(other)
    git(other, "push", "-q")
    before = git(remote, "rev-parse", "main")
    assert push(competition, remote, tmp_path).returncode != 0
    assert git(remote, "rev-parse", "main") == before


@pytest.mark.parametrize(
    "forged", [".github/workflows/grade.yml", "problems/double/problem.toml", "leaderboard/x.py", ""]
)
def test_commits_beyond_the_record_are_refused(forged: str, competition: Path, remote: Path, tmp_path: Path) -> None:
    base = git(competition, "rev-parse", "HEAD").strip()
    ledger = competition / "leaderboard/results/double.jsonl"
    result(competition, "bob")
    if not forged:
        ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[1:]))
    commit(competition, {forged: "forged\n"} if forged else {})
    git(competition, "branch", "-f", "recorded")
    (competition / "build/commit").mkdir(parents=True)
    git(competition, "bundle", "create", "-q", "build/commit/record.bundle", f"{base}..recorded")
    before = git(remote, "rev-parse", "main")
    done = push(competition, remote, tmp_path)
    assert (done.returncode, "::error::the commit of the record" in done.stdout) == (1, True)
    assert git(remote, "rev-parse", "main") == before


def test_an_unverifiable_record_is_not_taken(competition: Path, remote: Path) -> None:
    recorded(competition, "bob")
    shutil.rmtree(competition / "build/recorded/leaderboard/archive/double/bob")
    done = take(competition)
    assert done.returncode == 7
    assert "the archived source cannot be read" in done.stdout
    assert not (competition / "build/commit/record.bundle").exists()


def test_ci_runs_what_the_readme_says() -> None:
    """Nothing that `make check test test-full` runs is left out: `rest` is all of it but `lint` and `unit`."""
    makefile = (ROOT / "Makefile").read_text()
    rules = dict(re.findall(r"^([a-z-]+):([^#\n]*)", makefile, re.MULTILINE))
    parts, wanted = set(), {"check", "test", "test-full"}
    while wanted:
        target = wanted.pop()
        needed = set(rules[target].replace("$(ready)", "").split())
        wanted |= needed
        if not needed:
            parts.add(target)
    assert parts == {"lint", "unit", "integration", "full-unit", "full-gradings"}
    run = re.findall(r"^(?:run|beside lint make) (\S+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert run == ["lint", "unit", "rest"]
    recipes = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE))
    chosen = r"tests/\w+|\$\((?:grading|full_unit|alone)\)"
    folders = {part: set(re.findall(chosen, recipe)) for part, recipe in recipes.items()}
    assert folders["rest"] == folders["full-unit"] | folders["integration"] | folders["full-gradings"]
    marked = {part: re.findall(r"-m '(.*?)'", recipe) for part, recipe in recipes.items()}
    assert marked["unit"] == ["not full and not gpu"]
    # Browsers apart: what drives them leaves a running event loop in its process, where asyncio.run fails then.
    most = "(full or not unit) and not gpu and not alone"
    assert marked["rest"] == [most, "full and not gpu", "not gpu and alone"]
