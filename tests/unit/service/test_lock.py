"""One process at a time serves a project, from a local disk, and its archive is no part of a repository."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from kernelmark.server import lock
from kernelmark.server.lock import address_of_server, hide_archive_from_git, refuse_network, served
from tests.service_fixtures import make_project


def test_a_second_server_is_refused_and_told_where_the_first_is(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with served(project) as folder:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        with pytest.raises(UsageError, match=rf"served already, by process {os.getpid()} \(kernelmark serve\)"):
            served(project).__enter__()
        folder.announce("http://127.0.0.1:8080")
        with pytest.raises(UsageError, match=f"served already, by process {os.getpid()} at http://127.0.0.1:8080"):
            served(project).__enter__()
    with served(project):
        pass


def test_the_address_of_a_running_server_is_found(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    assert address_of_server(project.root) is None, "it was never served"
    with served(project) as folder:
        assert address_of_server(project.root) is None, "it does not listen yet"
        folder.announce("http://127.0.0.1:8080")
        assert address_of_server(project.root) == "http://127.0.0.1:8080"
    assert address_of_server(project.root) is None
    (project.root / ".kernelmark/server/lock").write_text("process 1 at http://127.0.0.1:8080")
    assert address_of_server(project.root) is None, "that server was killed"


def test_who_asks_for_the_address_does_not_keep_a_server_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path / "project")
    with served(project):
        pass
    asks = os.open(project.root / ".kernelmark/server/lock", os.O_RDONLY)
    fcntl.flock(asks, fcntl.LOCK_SH)
    monkeypatch.setattr(lock.time, "sleep", lambda _: os.close(asks))
    with served(project):
        pass


def test_a_server_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    code = (
        "import os, sys\n"
        "from kernelmark.project.project import Project\n"
        "from kernelmark.server.lock import served\n"
        "with served(Project(sys.argv[1])):\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(project.root)], check=False)
    assert killed.returncode == -9
    with served(project):
        pass


def test_nothing_of_the_server_s_folder_is_committed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with served(project):
        subprocess.run(["git", "init", "-q"], cwd=project.root, check=True)
        listed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=all"],
            cwd=project.root, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    assert "kernelmark.toml" in listed
    assert ".kernelmark" not in listed


@pytest.mark.parametrize(("kind", "refused"), [("nfs4", True), ("9p", True), ("cifs", True), ("ext4", False)])
def test_a_file_system_of_a_network_is_refused(tmp_path: Path, kind: str, refused: bool) -> None:
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"21 1 0:99 / /else rw - nfs server:/ rw\n22 1 {number} / {tmp_path} rw,relatime shared:1 - {kind} there rw\n"
    )
    if refused:
        with pytest.raises(UsageError, match="file system of a network"):
            refuse_network(tmp_path, mounts)
    else:
        refuse_network(tmp_path, mounts)


def test_git_ignores_the_archive_and_one_that_it_tracks_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")

    def git(*arguments: str) -> str:
        ended = subprocess.run(["git", *arguments], cwd=project.root, check=True, capture_output=True, text=True)
        return ended.stdout

    archive = project.locate("archive")
    assert hide_archive_from_git(project) == archive / ".gitignore", "there is neither an archive nor a repository yet"
    assert hide_archive_from_git(project) is None
    (archive / "kernel.py").touch()
    git("init", "-q")
    git("add", "--all")
    assert "archive" not in git("ls-files"), "not even the file itself"
    (archive / ".gitignore").unlink()
    (project.root / ".gitignore").write_text("/leaderboard/archive/\n")
    assert hide_archive_from_git(project) is None, "it is ignored already"
    git("add", "--force", "leaderboard/archive")
    with pytest.raises(UsageError, match="is tracked by git"):
        hide_archive_from_git(project)
