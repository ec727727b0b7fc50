"""`check --only` and `--fail-fast`: what runs, and that it is never taken for a whole check."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.verdict import Check, Outcome
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.command import kernelmark
from tests.documents import fields

HONEST = "import torch\ndef scale(x, y):\n    torch.mul(x, 2, out=y)\n"
WRONG = HONEST.replace("2,", "3,")
TWO = ("--only", "primes", "--only", "one")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\nauthor = "ada"\n')
    shutil.copytree(PROBLEMS / "scale", tmp_path / "problems" / "scale")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "options", "ran", "not_run", "outcome", "message"),
    [
        (HONEST, TWO, ["one", "primes"], 1, "incomplete", "the 2 tests that ran are right (1 not run)"),
        (WRONG, ("--fail-fast",), ["one"], 2, "wrong_answer", "(2 not run)"),
        pytest.param(
            *(HONEST, ("--fail-fast",), ["one", "primes", "hidden 1"], 0, "accepted", ""), marks=pytest.mark.full
        ),
    ],
)
def test_what_did_not_run_is_counted_and_only_a_whole_check_is_accepted(
    project: Path, source: str, options: tuple[str, ...], ran: list[str], not_run: int, outcome: str, message: str
) -> None:
    (project / "kernel.py").write_text(source)
    ended = kernelmark(project, "check", "scale", "kernel.py", "--format", "json", *options)
    check = Check.model_validate(fields(ended.stdout))
    assert ([test.name for test in check.tests], check.tests_not_run) == (ran, not_run)
    assert check.outcome == outcome
    assert ended.returncode == Outcome(outcome).exit_code
    assert message in check.message
