"""A grading as a person sees it: in a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelmark.services.selftest import PROBLEMS
from tests.command import KERNELMARK, environment

RIGHT = "import torch\ndef twice(x, y):\n    torch.mul(x, 2, out=y)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\nauthor = "ada"\n')
    shutil.copytree(PROBLEMS / "double", tmp_path / "problems" / "double")
    (tmp_path / "kernel.py").write_text(RIGHT)
    return tmp_path


def in_terminal(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `kernelmark` with stdout and stderr in a terminal; returns its status and all that it wrote."""
    ours, its = pty.openpty()
    variables = {**environment(), "TERM": "xterm"}
    variables.pop("NO_COLOR", None)
    process = subprocess.Popen([*KERNELMARK, *arguments], cwd=folder, env=variables, stdout=its, stderr=its)
    os.close(its)
    written = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        written += more
    os.close(ours)
    return process.wait(), written.decode().replace("\r\n", "\n")


def test_a_terminal_shows_a_bar_and_then_the_result_in_colours(project: Path) -> None:
    status, shown = in_terminal(project, "check", "double", "kernel.py")
    assert status == 0
    bar, _, result = shown.rpartition("\x1b[2K")
    assert re.search(r"━.* 0:\d\d test \d/3 ", bar)
    assert "\x1b[?25h" in shown.rpartition("accepted")[0], "the cursor is back before the result"
    assert result.startswith("\x1b[32m\x1b[1maccepted\x1b[0m\n\x1b[2m  double "), "the bar is gone"
