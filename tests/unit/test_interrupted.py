"""Ctrl-C ends a command with one line and the usual status, whenever it comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import environment

# Ctrl-C comes when the command imports this module, however fast the machine is.
PROGRAM = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1] and not self.__dict__.setdefault("sent", False):
            self.sent = True
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
# As in the foreground: whoever runs the tests may ignore it.
signal.signal(signal.SIGINT, signal.SIG_IGN if sys.argv[2] == "ignored" else signal.default_int_handler)
sys.argv[1:] = ["problems", "list"]
"""
START = "from kernelmark.commands.scripts import main\nmain()\n"


def interrupted(folder: Path, module: str, how: str = "") -> subprocess.CompletedProcess[str]:
    program = PROGRAM.replace("sys.argv[1] ", f"{module!r} ") + START
    command = [sys.executable, "-P", "-c", program, module, how]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("module", ["kernelmark.commands.cli", "click", "pydantic"])
def test_an_interruption_is_one_line_from_the_beginning(competition: Path, module: str) -> None:
    done = interrupted(competition, module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nkernelmark: error: interrupted\n")


def test_where_it_is_ignored_the_command_goes_on(competition: Path) -> None:
    done = interrupted(competition, "click", "ignored")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "double" in done.stdout


# The removal of a sandbox ends only after Ctrl-C has come while the command waits for it.
REMOVES = """
import os, signal, sys, threading
from harness.sandbox import ending

def remove():
    waits[0].wait()
    os.kill(os.getpid(), signal.SIGINT)
    waits[1].wait()
    os.write(1, b"removed\\n")

def counted():
    waits[len(begun)].set()
    begun.append(1)
    wait()

waits, begun, wait = [threading.Event(), threading.Event()], [], ending.wait
ending.wait = counted
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[1:] = ["problems", "list"]
ending.later(remove)
"""


def test_what_is_being_removed_is_removed_after_an_interruption(competition: Path) -> None:
    command = [sys.executable, "-P", "-c", REMOVES + START]
    done = subprocess.run(command, cwd=competition, env=environment(), capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"removed\n")
    assert b"double" in done.stdout
