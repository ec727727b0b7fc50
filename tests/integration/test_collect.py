"""What a tool around the runner writes gets out of the sandbox, whatever the submission does about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import sandbox
from harness.problem import load
from harness.profiling.watch import Watched, visible_cases, watch
from harness.sandbox import Watcher
from harness.submission import Submission
from harness.verdict import SandboxName
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.leftovers import nothing_left

# Writes a report when the runner has ended, as a profiler does.
TOOL = """#!/bin/sh
if [ "$1" = --import ]; then echo "details of $(cat "$2")"; exit; fi
"$@"
echo "the runner ended with $?"
printf 'a report' > report
"""
RIGHT = "import torch\ndef twice(x, y):\n    torch.mul(x, 2, out=y)\n"
# Connects in the collector's place, before it could, and offers a report of its own.
FORGES = """
import json, os, socket, sys
def twice(x, y):
    if os.fork() == 0:
        judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        judge.connect(sys.argv[1])
        offer = {FRAME}
        judge.send(json.dumps({"token": 0, **offer}).encode())
        while judge.recv(1 << 16):
            pass
        os._exit(0)
"""


def watched(tmp_path: Path, source: str, name: SandboxName = "process", script: str = TOOL) -> Watched:
    program = tmp_path / "tool" / "stand-in"
    program.parent.mkdir(mode=0o755)
    program.write_text(script)
    program.chmod(0o755)
    views = {"tool details": (str(program), "--import", "report"), "tool table": ("/nowhere/program",)}
    problem = load(PROBLEMS / "double")
    submission = Submission.of(source.encode(), "py", author="ada", name="twice.py")
    cases = visible_cases(problem, "cpu", tests=True)[:1]
    watcher = Watcher((str(program),), program.parent, "report", views)
    with nothing_left():
        return watch(problem, submission, watcher, cases, provider=sandbox.provider(name), device="cpu")


@pytest.mark.parametrize(
    "name",
    [
        "process",
        pytest.param("bwrap", marks=pytest.mark.bwrap),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.full]),
    ],
)
def test_the_report_and_its_views_come_out(tmp_path: Path, name: SandboxName) -> None:
    got = watched(tmp_path, RIGHT, name)
    assert (got.calls, got.fault, got.too_large) == (1, "", [])
    assert "the runner ended with 0" in got.text("tool output")
    assert got.documents["tool report"] == b"a report"
    assert got.text("tool details") == "details of a report\n"
    assert got.text("tool table") == "/nowhere/program: No such file or directory\n"


@pytest.mark.full
def test_without_a_report_there_are_no_views(tmp_path: Path) -> None:
    got = watched(tmp_path, RIGHT, script=TOOL.replace("printf 'a report' > report", ""))
    assert set(got.documents) == {"tool output"}


def test_what_was_written_before_a_crash_comes_out(tmp_path: Path) -> None:
    got = watched(tmp_path, "import os\ndef twice(x, y):\n    os._exit(3)\n")
    assert (got.calls, got.fault) == (0, "the process ended, while being watched")
    assert "the runner ended with 3" in got.text("tool output")


@pytest.mark.full
def test_a_report_that_is_too_large_is_not_fetched(tmp_path: Path) -> None:
    got = watched(tmp_path, RIGHT, script=TOOL.replace("printf 'a report' >", "truncate -s 100M"))
    assert got.too_large == ["tool report: 104,857,600 bytes, more than 33,554,432"]


@pytest.mark.parametrize(
    ("offer", "fault"),
    [
        ('{"kind": "Profiled", "artefacts": [{"name": "../../etc/passwd", "file_bytes": 1}]}', "a bad Profiled frame"),
        ('{"kind": "Done"}', "Done came while waiting for the tool"),
        ('{"kind": "Profiled", "artefacts": [{"name": "tool report", "file_bytes": 1}] * 17}', "at most 16|0 to 16"),
    ],
)
def test_a_submission_that_answers_for_the_collector_is_one_line(tmp_path: Path, offer: str, fault: str) -> None:
    got = watched(tmp_path, FORGES.replace("{FRAME}", offer))
    assert got.documents == {}
    assert re.search(fault, got.fault), got.fault
    assert got.fault.isprintable()
