"""The client where neither torch nor what only Unix has can be imported, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelmark.commands.boundary import GRADE
from kernelmark.service.accounts import Me, SignedIn
from kernelmark.service.submissions import QueueStatus, Submissions
from tests.unit.conftest import ROOT
from tests.unit.service.client.conftest import ENDS, TOKEN
from tests.unit.service.client.fake import Fake
from tests.unit.service.client.test_remote import EVENT, RUN, board, status
from tests.verdicts import accepted

UNIX = ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "syslog", "curses", "readline")
NOT_ON_WINDOWS = (
    *("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_PATH", "O_TMPFILE"),
    *("geteuid", "getuid", "getegid", "getgid", "fork", "setsid", "killpg", "mkfifo", "pipe2", "memfd_create"),
    *("sched_getaffinity", "posix_fallocate", "statvfs", "chown", "fchown", "getpgid", "wait4", "uname"),
)
BLOCK = """
import os, sys

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import platform, subprocess, tempfile, uuid  # which choose by the platform when they are imported
for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Without)
for name in LACKING:
    if hasattr(os, name):
        delattr(os, name)
"""
MAIN = "from kernelmark.commands.scripts import main; main()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder without a project, with a kernel."""
    (folder := tmp_path / "folder").mkdir()
    (folder / "kernel.py").write_text("def double(x, y): y.copy_(2 * x)\n")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`kernelmark` in a process in which all of this is missing."""
    (block := folder.parent / "block").mkdir(exist_ok=True)
    text = f"MISSING = {(*GRADE, *UNIX)!r}\nLACKING = {NOT_ON_WINDOWS!r}\n{BLOCK}"
    (block / "sitecustomize.py").write_text(text)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("KERNELMARK_")}
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**variables, "PYTHONPATH": f"{block}{os.pathsep}{ROOT}"},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["torch", *UNIX[:5]])
def test_they_cannot_be_imported_here(name: str, folder: Path) -> None:
    done = run(folder)
    assert done.returncode == 0, done.stderr
    code = [sys.executable, "-c", f"import {name}"]
    environment = {**os.environ, "PYTHONPATH": str(folder.parent / "block")}
    tried = subprocess.run(code, capture_output=True, text=True, check=False, env=environment)
    assert f"No module named '{name}'" in tried.stderr


def test_from_an_invitation_to_a_result(fake: Fake, folder: Path, own_configuration: Path) -> None:
    verdict = accepted(run=RUN, problem="double")
    me = Me(name="ada", role="participant", scopes=("submit",), ends=ENDS)
    fake.answers("POST invitations/accept", SignedIn(token=TOKEN, me=me), status=201)
    fake.answers("POST submissions", status(), status=202)
    fake.answers(f"GET {EVENT}", status("leased", 2), status("recorded", 3))
    fake.answers(f"GET {EVENT}/verdict", verdict.to_json().encode())
    fake.answers(f"GET runs/{RUN}", verdict.to_json().encode())
    fake.answers("GET boards/double", board(verdict))
    fake.answers("GET queue", QueueStatus(pools=()))
    fake.answers("GET submissions", Submissions(items=()))
    done = run(folder, "login", f"{fake.origin}/join#kmi_x", "--as", "bench")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert TOKEN in (own_configuration / "servers.toml").read_text()
    done = run(folder, "submit", "double", "kernel.py", "--to", "bench")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "accepted: 57.3 µs [57.0, 57.6] a call"), done.stderr
    assert "rank 1 of 1" in done.stdout
    for arguments, said in (
        (("queue",), "no devices were ever connected"),
        (("runs", "--from", "bench"), "nothing was submitted there yet"),
        (("board", "double", "--from", "bench"), "ada"),
        (("show", RUN, "--from", "bench"), RUN),
        (("watch", RUN, "--format", "json"), RUN),
        (("servers",), fake.origin),
        (("logout", "bench"), ""),
    ):
        done = run(folder, *arguments)
        assert (done.returncode, said in done.stdout) == (0, True), (arguments, done.stderr)


def test_what_grades_here_says_what_is_missing(folder: Path) -> None:
    done = run(folder, "check", "softmax", "kernel.py", "--here")
    line = "kernelmark: error: this command needs Linux; with --to, a server grades your kernel\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
