"""What `kernelmark problems show` adds to a problem: entry points in C, and the baselines' recorded times."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.problem import load
from kernelmark.authoring import sheet
from kernelmark.project.settings import Settings
from kernelmark.text.problem import BaselineTime
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import REPLAYED, accepted

PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.mark.parametrize(
    ("slug", "suffix", "expected"),
    [
        ("softmax", "cpp", 'extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols)'),
        ("softmax", "cu", 'extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols, '
                          "cudaStream_t stream)"),
        ("cross_entropy", "cu", 'extern "C" void cross_entropy_float16(const __half* logits, const int64_t* target, '
                                "const __half* upstream, __half* loss, __half* gradient, int64_t rows, int64_t classes,"
                                " cudaStream_t stream)"),
    ],
)  # fmt: skip
def test_entry_points_are_shown_as_declarations(tmp_path: Path, slug: str, suffix: str, expected: str) -> None:
    shown = sheet.sheet(Settings(root=tmp_path), load(PROBLEMS / slug))
    assert expected in shown.entry_points[suffix]
    assert shown.statement.startswith(f"# {slug}\n")


def test_the_newest_ranked_time_of_a_baseline_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, problem = Settings(root=tmp_path), load(PROBLEMS / "softmax")
    assert sheet.baselines(settings, problem) == ()
    monkeypatch.setattr(sheet, "device_name", lambda kind: "NVIDIA H200" if kind == "cuda" else None)
    ledger = JsonlLedger(settings.locate("results") / "softmax.jsonl")
    runs = []
    for name, score_ns, sha256, modes in (
        ("NVIDIA H200", 99_000, problem.sha256, REPLAYED),
        ("NVIDIA H200", 40_000, problem.sha256, REPLAYED),
        ("NVIDIA H100", 10_000, problem.sha256, REPLAYED),
        ("NVIDIA H200", 20_000, "0" * 64, REPLAYED),
        ("NVIDIA H200", 30_000, problem.sha256, ("calls",)),
    ):
        verdict = accepted(
            problem_sha256=sha256, modes=modes, ranked_timing="replayed", device_name=name, score_ns=score_ns,
            speedups={"eager": 1.5},
        )  # fmt: skip
        ledger.append(verdict)
        runs.append(verdict.run)
    assert sheet.baselines(settings, problem) == (BaselineTime("eager", "NVIDIA H200", 60_000, runs[1]),)
