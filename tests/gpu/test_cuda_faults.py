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
from kernelmark.cli import submit
from tests.leftovers import leftovers

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "faults" / "expected.toml").read_text())

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", EXPECTED)
def test_cuda_fault(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = EXPECTED[name]
    (tmp_path / "kernelmark.toml").write_text(f'problems = "{HERE.parent / "problems"}"\n')
    monkeypatch.chdir(tmp_path)
    before = leftovers()
    file = (HERE / "faults" / expected["file"]).resolve()
    result = CliRunner().invoke(
        submit, ["scale", str(file), "--device", "cuda", "--author", "tester", "--format", "json"]
    )
    assert leftovers() == before
    outcomes = expected["outcome"].split("|")
    verdict = Verdict.from_json(result.stdout)
    assert verdict.outcome in outcomes, verdict.message
    assert result.exit_code == verdict.outcome.exit_code
    assert re.search(expected.get("message", ""), verdict.message), verdict.message
    if verdict.outcome is Outcome.ACCEPTED:
        [benchmark] = verdict.benchmarks
        assert benchmark.mode == expected["mode"], benchmark.doubts
        assert verdict.score is not None
        assert verdict.score.median_ns >= expected.get("least_ns", 0)
        if "doubt" in expected:
            assert expected["doubt"] in [doubt.code for doubt in benchmark.doubts]
        assert (benchmark.mode == "calls") == ("plain_calls" in [doubt.code for doubt in benchmark.doubts])
