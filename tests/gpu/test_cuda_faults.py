"""What bad and odd submissions end in on a CUDA device, graded by `submit` in the sandbox that the settings name.

Run by hand on a machine with a GPU: `pytest -m gpu tests/gpu`. Beside the faults stand a few of the attacks that only
this design invites; the whole suite of attacks is a later step.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.verdict import Outcome, Verdict
from kernelmark.commands.cli import submit
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.leftovers import nothing_left

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "faults" / "expected.toml").read_text())

pytestmark = pytest.mark.gpu


AS_FAST = 0.99  # what two gradings of one file may differ by


def graded(name: str) -> tuple[int, Verdict]:
    """`submit` a file of the folder; returns the exit status and the verdict."""
    file = (HERE / "faults" / EXPECTED[name]["file"]).resolve()
    arguments = ["scale", str(file), "--device", "cuda", "--author", "tester", "--format", "json"]
    result = CliRunner().invoke(submit, arguments)
    return result.exit_code, Verdict.from_json(result.stdout)


@pytest.mark.parametrize("name", EXPECTED)
def test_cuda_fault(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = EXPECTED[name]
    (tmp_path / "kernelmark.toml").write_text(f'problems = "{PROBLEMS}"\n')
    monkeypatch.chdir(tmp_path)
    with nothing_left():
        exit_code, verdict = graded(name)
    assert verdict.outcome in expected["outcome"].split("|"), verdict.message
    assert exit_code == verdict.outcome.exit_code
    assert re.search(expected.get("message", ""), verdict.message), verdict.message
    if verdict.outcome is Outcome.ACCEPTED:
        [benchmark] = verdict.benchmarks
        assert benchmark.mode == expected["mode"], benchmark.doubts
        assert verdict.score is not None
        assert verdict.score.median_ns >= expected.get("least_ns", 0)
        if "twin" in expected:
            honest = graded(expected["twin"])[1].score
            assert honest is not None
            print(f"{name}: {verdict.score.median_ns} ns, honest {honest.median_ns} ns, {verdict.benchmarks[0].mode}")
            assert verdict.score.median_ns >= AS_FAST * honest.median_ns
        assert verdict.ranks == (benchmark.mode == "replayed")
        assert verdict.ranks == ("not_replayed" not in [doubt.code for doubt in verdict.doubts])
