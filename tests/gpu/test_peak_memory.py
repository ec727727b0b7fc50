"""The most device memory that a call allocates at a time, also that of a baseline that computes something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import judge
from harness.problem import load
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Outcome
from kernelmark.diagnostics.selftest import PROBLEMS

pytestmark = pytest.mark.gpu

N = 1_000_000
BLOCK = -(-4 * N // 512) * 512
"""What PyTorch allocates for a vector of the benchmark."""
KERNELS = {
    "in place": ("def twice(x, y):\n    y.copy_(x)\n    y.mul_(2)\n", 0),
    "one at a time": ("def twice(x, y):\n    half = x * 1\n    del half\n    y.copy_(x * 2)\n", BLOCK),
    "two at a time": ("def twice(x, y):\n    first = x * 1\n    second = first * 2\n    y.copy_(second)\n", 2 * BLOCK),
    "what was there before": (
        "kept = []\n\n\ndef twice(x, y):\n    if not kept:\n        kept.append(x.new_empty(50_000_000))\n"
        "    y.copy_(x)\n    y.mul_(2)\n",
        0,
    ),
}
DENSE = """
[[baselines]]
name = "dense"
kind = "dense"
entry = "other"
tensors = [
    { name = "a", role = "input", shape = ["2 * n"], dtype = "float16" },
    { name = "b", role = "output", shape = ["2 * n"], dtype = "float16" },
]
"""


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_that_of_one_call_above_what_was_there(name: str, provider: Provider) -> None:
    source, peak_bytes = KERNELS[name]
    submission = Submission.of(source, "py", author="tester")
    setup = judge.Setup(load(PROBLEMS / "double"), submission, provider=provider, device="cuda", effort="quick")
    verdict = judge.grade(setup)
    assert (verdict.outcome, verdict.timing) == (Outcome.ACCEPTED, "replayed"), verdict.message
    assert [case.peak_bytes for case in verdict.benchmarks] == [peak_bytes]


def test_a_baseline_that_computes_something_else_is_replayed_beside_it(tmp_path: Path, provider: Provider) -> None:
    folder = tmp_path / "double"
    folder.mkdir()
    for file in (PROBLEMS / "double").glob("*.*"):
        (folder / file.name).write_bytes(file.read_bytes() + (DENSE.encode() if file.suffix == ".toml" else b""))
    dense = Submission.of("def other(a, b):\n    b.copy_(a * 3)\n", "py", author="baseline", name="dense.py")
    submission = Submission.of(KERNELS["in place"][0], "py", author="tester")
    problem = load(folder)
    assert problem.sha256 == load(PROBLEMS / "double").sha256
    setup = judge.Setup(
        problem, submission, provider=provider, device="cuda", effort="quick", baselines=[dense]
    )  # fmt: skip
    verdict = judge.grade(setup)
    assert (verdict.outcome, verdict.timing, verdict.doubts) == (Outcome.ACCEPTED, "replayed", ()), verdict.message
    [paired] = verdict.benchmarks[0].baselines
    print(f"{paired.name}: {paired.time_ns} ns, {paired.peak_bytes} bytes, × {paired.speedup.median:.3f}")
    assert paired.name == "dense (another computation)"
    assert paired.peak_bytes == BLOCK
