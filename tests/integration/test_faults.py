"""The table of faults: what every kind of bad submission ends in, graded as a user would.

`faults/expected.toml` says what is expected of each file. Every grading must end within its limit plus five seconds,
leave nothing behind, and add exactly one line to the ledger (none for bad input).
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.verdict import Outcome
from kernelmark.commands.cli import submit
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.leftovers import nothing_left

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "faults" / "expected.toml").read_text())
# Docker differs from bubblewrap in how a sandbox is ended, limited and watched, not in what is judged.
DOCKER = {
    "honest_py", "honest_cpp", "memory_hog", "daemon", "fork_bomb", "disk_hog", "floods_stdout", "exits", "segfault",
    "sys_exit", "runs_on", "sleeps", "loop_in_build", "loop_in_call", "loop_in_import",
}  # fmt: skip
DOCKER_BY_DEFAULT = {"honest_py", "daemon"}
# What the judge says of these does not depend on the sandbox; without isolation a runner is forked (tests/forked.py).
JUDGED = {
    "wrong_values", "last_tile_wrong", "not_written", "returned", "nan", "mixed", "raises_at_import", "no_entry",
    "syntax_error", "no_gpu",
}  # fmt: skip
# Each of them ends as one that stays does, or as a runner in `test_hostile_runner`.
FULL = {
    "sleeps", "loop_in_import", "loop_in_call", "fork_bomb", "sys_exit", "returned", "no_symbol", "compile_error_cu",
    "nan", "raises_at_import", "loop_in_build", "honest_cpp", "segfault",
    "last_tile_wrong", "mixed", "no_entry", "syntax_error", "red_zone", "runs_on", "exits", "disk_hog",
}  # fmt: skip
# Beside its limit: starting a sandbox (torch's import) and ending it, while another test grades. A call that never ends
# would take ten minutes.
START_AND_END_S = 120


def marks(name: str, sandbox: str) -> list[pytest.MarkDecorator]:
    full = name in FULL or (sandbox == "docker" and name not in DOCKER_BY_DEFAULT)
    isolated = [getattr(pytest.mark, sandbox)] if sandbox != "process" else []
    return [*isolated, *([pytest.mark.full] if full else [])]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernelmark.toml").write_text(f'problems = "{PROBLEMS}"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def grade(file: Path, sandbox: str) -> Result:
    return CliRunner().invoke(
        submit, ["scale", str(file), "--sandbox", sandbox, "--device", "cpu", "--author", "tester", "--format", "json"]
    )


def ledger(project: Path) -> list[dict[str, Any]]:
    path = project / "leaderboard" / "results" / "scale.jsonl"
    return [json.loads(line)["verdict"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(
    ("name", "sandbox"),
    [
        pytest.param(n, s, marks=marks(n, s), id=f"{s}-{n}")
        for n in EXPECTED
        for s in (["process"] if n in JUDGED else ["bwrap"]) + ["docker"] * (n in DOCKER)
    ],
)
def test_fault(name: str, sandbox: str, project: Path) -> None:
    expected = EXPECTED[name]
    with nothing_left():
        started = time.monotonic()
        result = grade(HERE / "faults" / expected["file"], sandbox)
        seconds = time.monotonic() - started
    assert seconds < expected.get("seconds", 0) + 5 + START_AND_END_S
    if expected["outcome"] == "usage":
        assert (result.exit_code, ledger(project)) == (2, [])
        assert re.search(expected["message"], result.stderr)
        assert result.stderr.strip().count("kernelmark: error:") == 1
        return
    [verdict] = ledger(project)
    assert verdict["outcome"] in expected["outcome"].split("|"), verdict["message"]
    assert result.exit_code == Outcome(verdict["outcome"]).exit_code
    assert re.search(expected.get("message", ""), verdict["message"], re.DOTALL), verdict["message"]
    assert re.search(expected.get("traceback", ""), verdict["traceback"])
    if "hint" in expected:
        hints = [hint for test in verdict["tests"] for out in test["outputs"] for hint in
                 out.get("mismatch", {}).get("hints", [])]  # fmt: skip
        assert any(re.search(expected["hint"], hint) for hint in hints), hints
    assert "/home/runner" not in verdict["traceback"], "paths of the sandbox mean nothing to a participant"


@pytest.mark.parametrize("source", [b"x" * 10_000_000, b"\x7fELF\x00\xff\xfe"], ids=["ten megabytes", "binary"])
def test_a_file_that_is_no_source_is_a_usage_error(source: bytes, project: Path) -> None:
    file = project / "kernel.py"
    file.write_bytes(source)
    result = grade(file, "process")
    assert (result.exit_code, ledger(project)) == (2, [])
    assert re.search(r"kernel\.py (is larger than|is not UTF-8|holds a NUL)", result.stderr)
