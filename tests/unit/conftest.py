"""Projects in folders of their own, their command line, and a judge that gives prepared answers."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import harness.judge
from harness.errors import SandboxError
from harness.judge import Progress, Setup
from harness.submission import Submission
from harness.verdict import Check, Stage, Verdict
from kernelmark.commands.cli import main
from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.ledger import JsonlLedger
from tests.documents import valid
from tests.grading import problem_folder
from tests.sites import SiteProject
from tests.verdicts import accepted, as_check, failed
from tests.workers import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


PROBLEM = """
title = "Double"
entry = "twice"
parameters = ["n"]
tensors = [
    { name = "x", role = "input", shape = ["n"], dtype = "float32" },
    { name = "y", role = "output", shape = ["n"], dtype = "float32" },
]
cost = { bytes = "8 * n", flops = "n" }
tests = [
    { name = "small", params = { n = 4 }, devices = ["cpu"] },
    { name = "secret", params = { n = 77 }, devices = ["cpu"], hidden = true },
]
benchmarks = [{ name = "large", params = { n = 4096 }, devices = ["cpu"] }]
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """A command with arguments, `kernelmark` unless another is named; it ends the process, and so sets a handler."""
    before = signal.getsignal(signal.SIGTERM)

    def invoke(*args: str, command: Any = main) -> Said:
        with pytest.raises(SystemExit) as ended:
            command(list(args), prog_name="kernelmark")
        printed = capsys.readouterr()
        if ("--format", "json") in pairwise(args):
            valid(printed.out)
        return Said(int(ended.value.code or 0), printed.out, printed.err)

    yield invoke
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's settings in the environment are not the tests'; `KERNELMARK_RESIDENT` is (tests/conftest.py)."""
    for name in list(os.environ):
        if name.startswith("KERNELMARK_") and name != "KERNELMARK_RESIDENT":
            monkeypatch.delenv(name)


@pytest.fixture
def competition(tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the problem `double`, graded on the CPU without a sandbox; it is the working directory."""
    project = tmp_path / "project"
    shutil.copytree(PROBLEMS / "double", project / "problems/double")
    (project / "kernelmark.toml").write_text('author = "organizer"\ndevice = "cpu"\nsandbox = "process"\n')
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def command(competition: Path, invoke: Command) -> Command:
    """`kernelmark` with arguments, in that project."""
    return invoke


@pytest.fixture
def project(tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A participant's project: a problem that is open and one that is closed, and a kernel."""
    for slug, extra in (("double", ""), ("closed", "deadline = 2020-01-01T00:00:00Z\n")):
        problem_folder(tmp_path / "problems" / slug, extra + PROBLEM, "def reference(x):\n    return 2 * x\n")
    (tmp_path / "kernelmark.toml").write_text('author = "ada"\ndevice = "cpu"\nsandbox = "process"\n')
    (tmp_path / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(project: Path, invoke: Command) -> Command:
    """`kernelmark` with arguments, in that project."""
    return invoke


@pytest.fixture
def no_thread_stays() -> Iterator[None]:
    """Whatever the test does, the threads that it started have ended a moment later."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + PATIENCE_S
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


@pytest.fixture
def site(tmp_path: Path) -> SiteProject:
    """A project with two problems and no result, to build a site of."""
    return SiteProject(tmp_path)


class Judge:
    """Gives the prepared answers in turn, and remembers what it was asked."""

    def __init__(self, *answers: Verdict | BaseException) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, ...]] = []

    def grade(self, setup: Setup) -> Verdict:
        self.asked.append((setup.problem.slug, setup.submission, setup.provider.name, setup.device))
        self.setup = setup
        setup.on_progress(Progress(Stage.TEST, 0, 2, "small"))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer.model_copy(update={"problem": answer.problem.model_copy(update={"slug": setup.problem.slug})})

    def check(self, setup: Setup) -> Check:
        return as_check(self.grade(setup))


Answering = Callable[..., Judge]
"""Installs a judge that gives these answers."""


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Answering:
    def install(*answers: Verdict | BaseException) -> Judge:
        fake = Judge(*answers)
        monkeypatch.setattr(harness.judge, "grade", fake.grade)
        monkeypatch.setattr(harness.judge, "check", fake.check)
        return fake

    return install


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> list[Submission]:
    """A judge that accepts what says `right`, fails where it says `broken`, and remembers what it was given."""
    seen: list[Submission] = []

    def grade(setup: Setup) -> Verdict:
        submission = setup.submission
        seen.append(submission)
        if b"broken" in submission.source:
            raise SandboxError("no daemon")
        if b"unforeseen" in submission.source:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        if b"interrupted" in submission.source:
            raise KeyboardInterrupt
        make: Callable[..., Verdict] = failed if b"wrong" in submission.source else accepted
        return make(submission=submission, problem=setup.problem.slug)

    monkeypatch.setattr(harness.judge, "grade", grade)
    return seen


def recorded(project: Path) -> list[Verdict]:
    return [entry.verdict for entry in JsonlLedger(project / "leaderboard/results/double.jsonl").read()]
