"""The resident worker with real sandboxes: its verdicts are those of `--here`, and it leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.judge import Progress
from harness.verdict import Check
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.grading.resident import place
from kernelmark.grading.resident.command import CommandJudge
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.settings import Settings
from leaderboard.record.ledger import JsonlLedger
from tests.command import KERNELMARK, environment

SANDBOXES = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bwrap", marks=[pytest.mark.bwrap, pytest.mark.skipif(os.geteuid() != 0, reason="as root only")]),
]
# For what the worker answers, and when it ends: what starts and ends its sandbox has no part in that.
IN_ONE = pytest.mark.parametrize("resident", SANDBOXES[1:], indirect=True)
IMPORT = "import torch\n"
KERNELS = {
    "right": IMPORT + "def twice(x, y):\n    print('said')\n    torch.mul(x, 2, out=y)\n",
    "wrong": IMPORT + "def twice(x, y):\n    y.fill_(float('nan'))\n",
    "broken": "def twice(x, y:\n",
    "crashing": IMPORT + "def twice(x, y):\n    raise ValueError('no')\n",
}
# Only in a sandbox that was started ahead, which is the worker's.
STUCK = """
import time, torch
def twice(x, y):
    if b"KERNELMARK_AHEAD" in open("/proc/self/environ", "rb").read():
        time.sleep(1000)
    torch.mul(x, 2, out=y)
"""
REACHES = """
import glob, socket, torch
OWN = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
OWN.bind("/tmp/own")
OWN.listen()
def twice(x, y):
    for path in [{where!r}, *glob.glob("/tmp/**", recursive=True), *glob.glob("/run/**", recursive=True)]:
        other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            other.connect(path)
        except OSError:
            continue
        if {counts}:
            raise RuntimeError(f"reached {{path}}")
    torch.mul(x, 2, out=y)
"""
_VARIES = {"run", "seeds", "created_at", "duration_ns", "mismatch", "log"}


class Resident:
    """A project, and the worker that waits in it."""

    def __init__(self, root: Path, sandbox: str) -> None:
        self.root, self.sandbox = root, sandbox
        where = place.socket_of(root)
        assert where is not None
        self.where = where

    def write(self, source: str) -> Path:
        (file := self.root / "kernel.py").write_text(source)
        return file

    def judge(self, source: str, **flags: Any) -> tuple[PreparedJob, CommandJudge]:
        settings = Settings.load(self.root, sandbox=self.sandbox, resident=True, effort="quick", **flags)
        job = PreparedJob.prepare(settings, "double", self.write(source), author="ada")
        return job, CommandJudge(job, here=False)

    def pid(self) -> int:
        """Of the worker that waits, as soon as one does."""
        return until(lambda: place.waiting(self.where))

    def leave(self) -> int:
        job, judge = self.judge(KERNELS["right"])
        judge.leave_one(job.check())
        return self.pid()

    def leave_by_command(self) -> int:
        status, *_ = self.run("check", "double", self.write(KERNELS["right"]).name)
        assert status == 0
        return self.pid()

    @contextlib.contextmanager
    def begun(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that uses the worker; it ends with the block."""
        variables = {**environment(), "KERNELMARK_RESIDENT": "true"}
        with subprocess.Popen(
            [*KERNELMARK, *arguments, "--sandbox", self.sandbox],
            cwd=self.root,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with self.begun(*arguments) as process:
            out, err = process.communicate(timeout=600)
        return process.returncode, out, err


def until(true: Callable[[], int | None]) -> int:
    ends = time.monotonic() + 300
    while (found := true()) is None:
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


def gone(pid: int) -> int | None:
    """0 once the process has ended; one whose parent has not waited for it has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return 0
    return 0 if state == "Z" else None


def workers(root: Path) -> list[int]:
    """The process ids of the resident workers of this project that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if os.fsencode(root) in words and b"--resident" in words:
                found.append(int(path.parent.name))
    return found


@pytest.fixture(params=SANDBOXES)
def resident(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resident]:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("KERNELMARK_DEBUG", raising=False)
    with tempfile.TemporaryDirectory(prefix="r-", dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nauthor = "ada"\neffort = "quick"\n')
        shutil.copytree(PROBLEMS / "double", tmp_path / "problems" / "double")
        spec = tmp_path / "problems/double/problem.toml"
        spec.write_text(spec.read_text().replace("call_s = 10.0", "call_s = 900.0"))
        project = Resident(tmp_path, request.param)
        yield project
        for pid in workers(tmp_path):  # one that a command has just left may not listen yet
            os.kill(pid, signal.SIGTERM)
            until(lambda pid=pid: gone(pid))  # type: ignore[misc]


def fields(found: object) -> object:
    """A document without its times, and without what follows from the random inputs."""
    if isinstance(found, dict):
        kept = {name: value for name, value in found.items() if name not in _VARIES}
        return {name: type(value).__name__ if name.endswith("_ns") else fields(value) for name, value in kept.items()}
    if isinstance(found, list):
        return [fields(each) for each in found]
    return "a number" if isinstance(found, float) else found


def document(result: Check) -> Any:
    return fields(json.loads(result.model_dump_json()))


@IN_ONE
@pytest.mark.parametrize("name", KERNELS)
def test_its_checks_are_those_of_here(resident: Resident, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resident.leave()
    job, judge = resident.judge(KERNELS[name])
    here, steps = list[Progress](), list[Progress]()
    expected = job.check(here.append)
    monkeypatch.setattr(PreparedJob, "check", lambda *_, **__: pytest.fail("graded here"))
    found = judge.check(steps.append)
    assert (document(found), found.log, steps) == (document(expected), expected.log, here)
    assert place.waiting(resident.where) is None, "its job was its only one"


def test_its_verdicts_are_those_of_here(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> None:
    resident.leave()
    job, judge = resident.judge(KERNELS["right"], baselines=("none",))
    here, steps = list[Progress](), list[Progress]()
    expected = job.grade(here.append)
    monkeypatch.setattr(PreparedJob, "grade", lambda *_, **__: pytest.fail("graded here"))
    found = judge.grade(steps.append)
    for shown in (of_expected := document(expected), of_found := document(found)):
        shown["doubts"] = None  # a busy machine causes some
        for benchmark in shown["benchmarks"]:  # its values are measured
            fields = {"name": benchmark["name"], "params": benchmark["params"]}
            benchmark.update({name: type(value).__name__ for name, value in benchmark.items()} | fields)
    assert of_found == of_expected
    assert [step for step in steps if step.total] == [step for step in here if step.total]


@IN_ONE
def test_some_tests_are_run_as_here(resident: Resident) -> None:
    resident.leave()
    _, judge = resident.judge(KERNELS["right"])
    found = judge.check(lambda _: None, only=["prime"])
    assert ([test.name for test in found.tests], found.outcome.value) == (["prime"], "incomplete")


def test_a_command_leaves_one_that_the_next_uses_as_if_it_were_none(resident: Resident) -> None:
    for name in ("right", "crashing"):
        file = resident.write(KERNELS[name]).name
        here = resident.run("check", "double", file, "--here")
        first = resident.run("check", "double", file)
        pid = resident.pid()
        second = resident.run("check", "double", file)
        until(lambda pid=pid: gone(pid))  # type: ignore[misc]
        assert second == first == here
        place.waiting(resident.where, end=True)


@IN_ONE
@pytest.mark.parametrize("change", ["a problem", "a setting", "the environment"])
def test_a_change_ends_it(resident: Resident, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = resident.leave()
    if change == "a problem":
        with (resident.root / "problems/double/reference.py").open("a") as file:
            file.write("\n")
    elif change == "a setting":
        with (resident.root / "kernelmark.toml").open("a") as file:
            file.write('title = "another"\n')
    else:
        monkeypatch.setenv("TRITON_ANYTHING", "1")
    job, judge = resident.judge(KERNELS["right"])
    assert judge._answer(lambda _: None, {"effort": "default", "baselines": (), "timed": False}) is None
    until(lambda: gone(pid))
    judge.leave_one(job.check())
    assert resident.pid() != pid


def test_a_second_command_and_an_interruption(resident: Resident) -> None:
    pid = resident.leave_by_command()
    file = resident.write(STUCK).name
    with resident.begun("check", "double", file) as first:
        assert first.stderr is not None
        assert first.stderr.readline().startswith("build")
        assert first.stderr.readline().startswith("test")
        status, out, _ = resident.run("check", "double", file, "--here")
        assert (status, out.splitlines()[0]) == (0, "accepted"), "beside the first"
        assert gone(pid) is None, "it is grading the first"
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=600)
    assert (first.returncode, out, err.strip()) == (130, "", "kernelmark: error: interrupted")
    until(lambda: gone(pid))
    assert not list(Path(tempfile.gettempdir()).glob("kernelmark-session-*")), "and so have its sandboxes"


def test_one_that_is_killed_costs_time_and_nothing_is_recorded_twice(resident: Resident) -> None:
    pid = resident.leave_by_command()
    file = resident.write(STUCK).name
    with resident.begun("submit", "double", file) as running:
        assert running.stderr is not None
        assert any(line.startswith("test") for line in iter(running.stderr.readline, "")), "it ended before"
        os.kill(pid, signal.SIGKILL)
        out, err = running.communicate(timeout=600)
    assert running.returncode == 0, err
    assert "the resident worker was lost; grading here instead" in err
    assert out.startswith("accepted")
    assert len(list(JsonlLedger(resident.root / "leaderboard/results/double.jsonl").read())) == 1


def test_a_submission_does_not_reach_it(resident: Resident) -> None:
    pid = resident.leave()
    found = {}
    for counts in ("path != '/tmp/own'", "True"):  # the second is the twin: what it would see if there were one
        file = resident.write(REACHES.format(where=str(resident.where), counts=counts)).name
        found[counts], *_ = resident.run("check", "double", file, "--here")
    assert list(found.values()) == [0, 4]
    assert place.waiting(resident.where) == pid
