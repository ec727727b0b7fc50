"""Sandboxes that end slowly, or not whole: the verdict stays, its outcome is right, and what is left is reported.

The runners are scripted, or small processes; the attack `slow_death` has a real tree of processes that dies slowly.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import SandboxError
from harness.judge.session.conversation import _DEATH_S
from harness.problem import Problem, load
from harness.sandbox import Breach, Exit, Launch
from harness.submission import Submission
from harness.verdict import Outcome
from harness.wire import protocol
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.grading import api
from tests.grading import checked
from tests.runners import Script, Scripted, doubling

SUBMISSION = Submission.of("def scale(x, y): ...", "py", author="tester")


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load(PROBLEMS / "scale")


def hang_up(script: Script, token: int, body: dict[str, Any]) -> None:
    raise EOFError


def test_what_a_sandbox_leaves_costs_no_verdict(problem: Problem, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise SandboxError("the control group stays", "remove it by hand")

    provider = Scripted(doubling(), on_close=fail)
    assert checked(problem, SUBMISSION, provider=provider).outcome is Outcome.ACCEPTED
    [record] = caplog.records
    assert (record.name, record.getMessage()) == (
        "kernelmark",
        "kernelmark: warning: a sandbox could not be removed (the control group stays; remove it by hand)",
    )


def test_what_a_sandbox_leaves_is_not_graded_again(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[Script] = []

    def fail() -> None:
        raise SandboxError("the control group stays")

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if script not in launches:
            launches.append(script)
        script.reply(token, "Done")

    (tmp_path / "kernelmark.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelmark.project.choice.providers", lambda settings: [Scripted(act, on_close=fail)])
    check = api.check(problem, SUBMISSION, device="cpu", sandbox="process")
    assert (check.outcome, len(launches)) == (Outcome.WRONG_ANSWER, 1)


def test_a_sandbox_that_ends_slowly_is_waited_for_and_told(
    problem: Problem, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.sandbox.ending._LONG_S", 0.5)
    provider = Scripted(hang_up, on_close=lambda: time.sleep(1))
    assert checked(problem, SUBMISSION, provider=provider).outcome is Outcome.RUNTIME_ERROR
    [record] = caplog.records
    told = r"kernelmark: warning: the processes of a sandbox took [1-9]\d* s to end"  # longer on a busy machine
    assert re.fullmatch(told, record.getMessage())


RUNNER = """
import json, socket, sys, time
judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
judge.connect(sys.argv[1])
def reply(token, kind, **fields): judge.send(json.dumps({"token": token, "kind": kind, **fields}).encode())
reply(0, "Hello", protocol=int(sys.argv[2]), python="3.11.7")
reply(json.loads(judge.recv(65536))["token"], "Ready", torch="2.13.0", triton="3.7.1")
judge.recv(65536)
"""


class SlowToEnd(Scripted):
    """A runner that is a process; when it is dead, the rest of its sandbox takes a while to end."""

    def __init__(self, program: str, after_s: float, killed: Path | None = None) -> None:
        """`killed`: the kernel has killed one of its processes for memory once this file is there."""
        self._program, self._after_s, self._killed = program, after_s, killed

    def launch(self, launch: Launch) -> Any:
        line = [sys.executable, "-c", RUNNER + self._program, str(launch.socket), str(protocol.PROTOCOL)]
        runner = subprocess.Popen(line)
        dead_at: list[float] = []

        def ended() -> Exit | None:
            if runner.poll() is not None and not dead_at:
                dead_at.append(time.monotonic())
            late = bool(dead_at) and time.monotonic() > dead_at[0] + self._after_s
            return Exit(runner.returncode, None) if late else None

        def close() -> None:
            runner.kill()
            runner.wait()

        def breach() -> Breach | None:
            return Breach("memory", "too much") if self._killed is not None and self._killed.exists() else None

        return SimpleNamespace(ended=ended, breach=breach, close=close, startup_log=lambda: "")


@pytest.mark.parametrize(
    ("program", "outcome", "message"),
    [
        ("sys.exit(3)", Outcome.RUNTIME_ERROR, "exit status 3"),
        ("judge.close(); time.sleep(1e6)", Outcome.REJECTED, "closed its connection but is still alive"),
    ],
    ids=["dead, and the sandbox ends slowly", "alive"],
)
def test_a_runner_that_is_dead_is_distinguished_from_one_that_lives_on(
    program: str, outcome: Outcome, message: str, problem: Problem
) -> None:
    """The kernel reports the end of a sandbox when its last process is gone, seconds after the runner at times."""
    started = time.monotonic()
    check = checked(problem, SUBMISSION, provider=SlowToEnd(program, after_s=_DEATH_S + 1))
    assert (check.outcome, message in check.message) == (outcome, True), check.message
    assert time.monotonic() - started < _DEATH_S + 20


def test_one_whose_memory_ran_out_while_its_sandbox_ends_slowly_is_told_of_that(
    problem: Problem, tmp_path: Path
) -> None:
    """On a busy machine the runner's connection may close long before its processes are gone."""
    killed = tmp_path / "killed"
    provider = SlowToEnd(f"judge.close(); open({str(killed)!r}, 'w'); time.sleep(1e6)", _DEATH_S + 1, killed)
    check = checked(problem, SUBMISSION, provider=provider)
    assert (check.outcome, "too much, while" in check.message) == (Outcome.MEMORY_LIMIT, True), check.message
