"""A competition in a folder of its own, and its command line, for the tests of what organizers do."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelmark.cli import main

ROOT = Path(__file__).resolve().parents[2]


class Said(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def competition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the problem `double`, graded on the CPU without a sandbox; it is the working directory."""
    for name in list(os.environ):
        if name.startswith("KERNELMARK_"):
            monkeypatch.delenv(name)
    project = tmp_path / "project"
    shutil.copytree(ROOT / "tests/problems/double", project / "problems/double")
    (project / "kernelmark.toml").write_text('author = "organizer"\ndevice = "cpu"\nsandbox = "process"\n')
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def command(competition: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """`kernelmark` with arguments, in that project."""
    before = signal.getsignal(signal.SIGTERM)

    def invoke(*args: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(list(args), prog_name="kernelmark")
        printed = capsys.readouterr()
        return Said(int(ended.value.code or 0), printed.out, printed.err)

    yield invoke
    signal.signal(signal.SIGTERM, before)
