"""docs/moving.md, as it is written there: a competition is backed up, moved to another machine, and upgraded."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.submission import Submission
from harness.verdict import PrivateId
from harness.wire.protocol import PROTOCOL
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import Settings
from kernelmark.record.recording import record
from tests.repository import commit, git, init
from tests.unit.conftest import ROOT, Command
from tests.verdicts import accepted

BACK_UP, RESTORE, UPGRADE = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/moving.md").read_text(), re.DOTALL)
PRIVATE = 'salt = "{salt}"\n[[tests]]\nname = "a private one"\nparams = {{ n = 5 }}\n'


@pytest.fixture
def held(competition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A competition with private cases, two results and an event; `kernelmark` is a program."""
    private, programs = tmp_path / "srv/private-cases", tmp_path / "bin"
    for folder in (
        private,
        programs,
        *(competition / name for name in ("reference", "submissions", "leaderboard/devices")),
    ):
        folder.mkdir(parents=True)
    (private / "double.toml").write_text(PRIVATE.format(salt="5" * 32))
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(private))
    program = programs / "kernelmark"
    start = "from kernelmark.commands.scripts import main; main()"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -c "{start}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    settings = Settings.load()
    problem = find_problem(settings, "double")
    assert problem.private is not None
    for author, run, ns in (("ada", "a" * 16, 50_000), ("bob", "b" * 16, 40_000)):
        kernel = Submission.of(f"# {author}\n", "py", author=author, name="kernel.py")
        verdict = accepted(problem="double", submission=kernel, run=run, score_ns=ns, protocol=PROTOCOL)
        own = verdict.problem.model_copy(
            update={"sha256": problem.sha256, "private": PrivateId(sha256=problem.private.sha256, cases=1)}
        )
        record(settings, kernel, verdict.model_copy(update={"problem": own}))
    assert command("moderate", "annotate", "aaaa", "--actor", "grace", "--reason", "fine").code == 0
    return competition


def shell(script: str, folder: Path, **more: str) -> str:
    run = ["bash", "-euc", script]
    done = subprocess.run(run, cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def standings(folder: Path, private: Path) -> list[tuple[str, list[tuple[int, str, bool]]]]:
    result = shell("kernelmark board --format json", folder, KERNELMARK_PRIVATE_CASES=str(private))
    tables = json.loads(result)["items"]
    return [
        (table["key"]["problem_sha256"], [(row["rank"], row["run"], row["stale"] is not None) for row in table["rows"]])
        for table in tables
    ]


def test_a_backup_restored_elsewhere_is_the_same_competition(held: Path, tmp_path: Path) -> None:
    before = standings(held, tmp_path / "srv/private-cases")
    assert [row[1:] for row in before[0][1]] == [("b" * 16, False), ("a" * 16, False)]
    shell(BACK_UP, held)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("competition.tar.gz", "private-cases.tar.gz"):
        shutil.move(tmp_path / name, elsewhere)
    shutil.rmtree(tmp_path / "srv")
    hashes = (tmp_path / "last-hashes").read_text().split()
    shutil.copytree(held / "leaderboard/boards", tmp_path / "boards")
    shutil.rmtree(held)
    shell(RESTORE, elsewhere)
    restored = elsewhere / "competition"
    assert standings(restored, elsewhere / "private-cases") == before
    assert all(digest in (restored / "leaderboard/results/double.jsonl").read_text() for digest in hashes)
    assert (restored / "leaderboard/boards/double.md").read_text() == (tmp_path / "boards/double.md").read_text()

    (elsewhere / "private-cases/double.toml").write_text(PRIVATE.format(salt="6" * 32))
    other = standings(restored, elsewhere / "private-cases")
    assert all(stale for _, rows in other for _, _, stale in rows), "another salt is another problem"


def test_a_fork_of_a_competition_is_upgraded(held: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "srv/private-cases"
    upstream = tmp_path / "upstream"
    shutil.copytree(
        held, upstream, ignore=shutil.ignore_patterns("results", "archive", "boards", "BOARD.md", ".kernelmark")
    )
    init(upstream)
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "-q", str(upstream), str(fork))
    git(fork, "remote", "rename", "origin", "upstream")
    for name in ("results", "archive", "boards"):
        shutil.copytree(held / "leaderboard" / name, fork / "leaderboard" / name)
    commit(fork, message="the record")
    before, ledger = standings(fork, private), (fork / "leaderboard/results/double.jsonl").read_bytes()
    commit(upstream, {"newer.txt": "# newer\n", "problems/double/README.md": "Twice, said better.\n"}, "newer")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "scratch")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "scratch@example.org")
    shell(UPGRADE, fork)
    assert (fork / "newer.txt").exists()
    assert standings(fork, private) == before
    assert (fork / "leaderboard/results/double.jsonl").read_bytes() == ledger
