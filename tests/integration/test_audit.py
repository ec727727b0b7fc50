"""An audit with stand-ins for the tools, around the real runner in real sandboxes, on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import sandbox
from harness.problem import load
from harness.profiling.sanitizer import ToolReport, audit
from harness.sandbox import Watcher
from harness.submission import Submission
from harness.verdict import SandboxName
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.leftovers import nothing_left

DOUBLE = PROBLEMS / "double"
# Says how the runner ended, and then sums up as a tool does.
STAND_IN = """#!/bin/sh
echo "========= COMPUTE-SANITIZER"
"$@"
echo "========= Stand-in: the runner ended with $?"
echo "========= ERROR SUMMARY: 0 errors"
"""
RIGHT = """
import torch
def twice(x, y):
    torch.mul(x, 2, out=y)
"""


def watched(
    tmp_path: Path, source: str, name: SandboxName, script: str = STAND_IN, problem: Path = DOUBLE
) -> tuple[ToolReport, str, list[str]]:
    """What the stand-in says of a source, what it printed, and the cases that were called."""
    program = tmp_path / "tool" / "stand-in"
    program.parent.mkdir(mode=0o755)
    program.write_text(script)
    program.chmod(0o755)
    watcher = Watcher((str(program),), program.parent)
    submission = Submission.of(source.encode(), "py", author="ada", name="twice.py")
    cases: list[str] = []
    provider = sandbox.provider(name)
    with nothing_left():
        found = audit(watcher, load(problem), submission, provider=provider, device="cpu", on_case=cases.append)
    return found, found.printed, cases


@pytest.mark.bwrap  # `test_collect` has a tool in each sandbox
def test_a_tool_starts_the_runner_sees_every_test_and_sums_up_after_its_end(tmp_path: Path) -> None:
    found, printed, cases = watched(tmp_path, RIGHT, "bwrap")
    assert found == ToolReport("clean", "3 of 3 visible tests: no errors")
    assert "the runner ended with 0" in printed
    assert cases == ["one", "prime", "pages"]


def test_a_tool_sees_no_hidden_test(tmp_path: Path) -> None:
    """What it and the kernel say is appended to the run, for everybody to read."""
    problem = DOUBLE.with_name("double_hidden")
    found, _, cases = watched(tmp_path, RIGHT, "process", problem=problem)
    assert found == ToolReport("clean", "3 of 3 visible tests: no errors")
    assert cases == ["one", "prime", "pages"]


def test_the_kernel_is_called_on_copies_of_its_own(tmp_path: Path) -> None:
    """An input may be written there: a watcher's allocations are nobody else's, and nothing is read back."""
    found, *_ = watched(tmp_path, "def twice(x, y):\n    x.zero_()\n    y.zero_()\n", "process")
    assert found.state == "clean"


@pytest.mark.parametrize(
    ("source", "script", "message", "called"),
    [
        ("def twice(x, y):\n    assert len(x) < 100, 'too long'\n", STAND_IN, "too long", ["one", "prime"]),
        ("import os\ndef twice(x, y):\n    os._exit(3)\n", STAND_IN, "the runner ended with 3", ["one"]),
        ("def twice(\n", STAND_IN, "", []),
        (RIGHT, "#!/bin/sh\necho no device that I know; exit 9\n", "before it had started the runner.*no device", []),
    ],
    ids=["it raises", "it ends the runner", "it does not build", "the tool does not start the runner"],
)
def test_what_fails_is_not_called_clean(
    tmp_path: Path, source: str, script: str, message: str, called: list[str]
) -> None:
    found, printed, cases = watched(tmp_path, source, "process", script)
    assert found.state == "failed"
    assert re.search(message, found.text + printed, re.DOTALL)
    assert cases == called
