"""A grading as a person sees it: in a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from kernelmark.diagnostics.selftest import PROBLEMS
from tests.command import KERNELMARK, environment

_SILENT_S = 120
RIGHT = "import torch\ndef twice(x, y):\n    torch.mul(x, 2, out=y)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\nauthor = "ada"\n')
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems" / "double")
    (tmp_path / "kernel.py").write_text(RIGHT)
    return tmp_path


class Terminal:
    """`kernelmark` with stdout and stderr in a terminal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ours, its = pty.openpty()
        variables = {**environment(), "TERM": "xterm"}
        variables.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [*KERNELMARK, *arguments],
            cwd=folder,
            env=variables,
            stdout=its,
            stderr=its,
            # Where these tests run in the background, it is ignored, and that is inherited.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        os.close(its)
        self.shown = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def read_until(self, pattern: str) -> str:
        """What is written from now on until it ends with the pattern; all there is, if it never does."""
        before = len(self.shown)
        while not re.search(pattern, self.shown[before:]):
            assert select.select([self._ours], [], [], _SILENT_S)[0], f"nothing after {self.shown[before:]!r}"
            try:
                more = os.read(self._ours, 1 << 16)
            except OSError:  # the other side is closed
                break
            self.shown += more.decode(errors="replace").replace("\r\n", "\n")
        return self.shown[before:]

    def end(self) -> int:
        """Read the rest; returns the exit status."""
        self.read_until("$never^")
        os.close(self._ours)
        return self.process.wait()


def test_a_terminal_shows_a_bar_and_then_the_result_in_colours(project: Path) -> None:
    with Terminal(project, "check", "double", "kernel.py") as terminal:
        assert terminal.end() == 0
    bar, _, result = terminal.shown.rpartition("\x1b[2K")
    assert re.search(r"━.* \d+:\d\d test \d/3 ", bar)
    assert "\x1b[?25h" in terminal.shown.rpartition("accepted")[0], "the cursor is back before the result"
    assert result.startswith("\x1b[1;32maccepted\x1b[0m\n\x1b[2m  double "), "the bar is gone"


def test_a_watched_file_is_checked_again_until_ctrl_c(project: Path) -> None:
    with Terminal(project, "check", "double", "kernel.py", "--watch", "--only", "one", "--fail-fast") as terminal:
        waiting = "waiting until kernel.py is saved; Ctrl-C ends\n"
        assert "incomplete: the test that ran is right (" in terminal.read_until(waiting)
        (project / "new.py").write_text(RIGHT.replace("2,", "3,"))
        (project / "new.py").replace(project / "kernel.py")
        shown = terminal.read_until(waiting)
        assert re.match(r"──── \d\d:\d\d:\d\d ─+\n", shown)
        assert "wrong answer: test one: y" in shown
        terminal.process.send_signal(signal.SIGINT)
        before = len(terminal.shown)
        assert terminal.end() == 1, "the status of the last check"
        assert terminal.shown[before:].strip() == "", "no error and no traceback"
