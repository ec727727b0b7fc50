"""The commands as processes: what they import, and how they end, whoever interrupts them or stops reading."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness.judge
from harness.errors import HarnessError
from harness.verdict import Outcome
from tests.command import KERNELMARK, environment
from tests.unit.conftest import Command, Judge, recorded
from tests.verdicts import failed

REPOSITORY = Path(__file__).parents[2]


def test_an_unexpected_error_is_a_harness_failure_with_a_traceback_file(
    run: Command, judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(ZeroDivisionError("a\nb"), ZeroDivisionError("again"))
    ended = run("bench", "double", "kernel.py")
    assert ended.code == 7
    found = re.search(r"^kernelmark: error: unexpected ZeroDivisionError: a b; traceback in (\S+)$", ended.err, re.M)
    file = Path(found[1])
    assert "Traceback (most recent call last)" in file.read_text()
    file.unlink()
    monkeypatch.setenv("KERNELMARK_DEBUG", "1")
    shown = run("bench", "double", "kernel.py")
    assert shown.code == 7
    assert "Traceback (most recent call last)" in shown.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_interruption_ends_with_130_and_termination_unwinds_the_stack(
    run: Command, judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A terminal that is closed sends SIGHUP."""
    judge(KeyboardInterrupt())
    ended = run("submit", "double", "kernel.py")
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.endswith("\nkernelmark: error: interrupted\n")
    unwound = []

    def terminated(*_: Any, **__: Any) -> None:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            unwound.append(True)

    monkeypatch.setattr(harness.judge, "grade", terminated)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert run("submit", "double", "kernel.py").code == 143
    finally:
        signal.signal(signal.SIGHUP, before)
    assert unwound == [True]
    assert recorded(Path.cwd()) == []


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import kernelmark", {"pydantic", "click", "torch"}),
        ("import harness.judge, harness.arena, harness.device", {"docker", "numpy", "torch"}),
        ("from kernelmark.commands.cli import submit; submit(['--help'])", {"pydantic", "rich", "torch"}),
        ("from kernelmark.commands.cli import submit; submit(['softmax', 'absent.py'])", {"docker", "rich", "torch"}),
    ],
)
def test_starting_up_imports_nothing_that_is_slow(program: str, absent: set[str]) -> None:
    code = f"import sys\ntry:\n    {program}\nexcept SystemExit: pass\nprint(*sys.modules)"
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": os.environ["PATH"]}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    assert not absent & set(answer.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--nonsense", 2)])
def test_a_console_script_ends_at_once_with_everything_printed(argument: str, status: int) -> None:
    line = [sys.executable, "-c", "from kernelmark.commands.scripts import submit; submit()", argument]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert ended.returncode == status
    assert ("Exit status" in ended.stdout) == (status == 0)
    assert ("No such option" in ended.stderr) == (status == 2)


@pytest.mark.parametrize("gone", ["stdout", "stderr"])
def test_a_reader_that_has_gone_changes_no_exit_status(run: Command, judge: Callable[..., Judge], gone: str) -> None:
    """`submit ... | head -1` and `2>&1 | grep -q`: click would end with 1, which blames the submission."""
    judge(failed(Outcome.TIMEOUT))
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(writing, "w", buffering=1) as pipe:
        patch.setattr(sys, gone, pipe)
        assert run("submit", "double", "kernel.py").code == Outcome.TIMEOUT.exit_code
        assert run("submit", "double", "absent.py").code == 2
        assert run("board", "double").code == 0
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def test_a_pipe_of_ours_that_breaks_is_our_fault(run: Command, judge: Callable[..., Judge]) -> None:
    judge(BrokenPipeError(32, "Broken pipe"))
    ended = run("submit", "double", "kernel.py")
    assert ended.code == HarnessError.exit_code
    assert "unexpected BrokenPipeError" in ended.err


def shell(folder: Path, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`kernelmark` with these words, as a shell reads them."""
    command = f"{shlex.join(KERNELMARK)} {line}"
    return subprocess.run(
        ["sh", "-c", command], env=environment() | variables, cwd=folder, capture_output=True, text=True, check=False
    )


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    ended = shell(tmp_path, "explain drift >/dev/full")
    assert (ended.returncode, ended.stderr) == (
        7,
        "kernelmark: error: stdout cannot be written (No space left on device)\n",
    )
    assert shell(tmp_path, "explain nonsense 2>/dev/full").returncode == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_status(tmp_path: Path, closed: str) -> None:
    for word, status in {"drift": 0, "nonsense": 2}.items():
        ended = shell(tmp_path, f"explain {word} {closed}")
        assert ended.returncode == status, ended.stderr
        assert bool(ended.stdout) == (not status and ">&-" not in closed.split())


def test_names_need_no_locale(tmp_path: Path) -> None:
    """Python then takes file names as ASCII, and fails for a project in such a folder."""
    (folder := tmp_path / "Übung").mkdir()
    (folder / "kernelmark.toml").write_text('gpu_mode_checkout = "../chéckout"\n')
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert shell(folder, "runs", **ascii_only).returncode == 0
    assert "cd 'é ü'" in shell(folder, "init 'é ü'", **ascii_only).stdout


# ---- Ctrl-C at any moment

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


def test_with_sigint_ignored_the_command_goes_on(competition: Path) -> None:
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


def test_a_removal_in_progress_is_finished_after_an_interruption(competition: Path) -> None:
    command = [sys.executable, "-P", "-c", REMOVES + START]
    done = subprocess.run(command, cwd=competition, env=environment(), capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"removed\n")
    assert b"double" in done.stdout
