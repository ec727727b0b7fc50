"""The host's time to launch a call of many small kernels, which replays hide."""

from __future__ import annotations

import pytest

from harness import judge
from harness.problem import load
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Outcome
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.text import show

pytestmark = pytest.mark.gpu

SMALL = "def twice(x, y):\n    y.copy_(x)\n    for _ in range(200):\n        y.add_(0)\n    y.mul_(2)\n"


def test_many_small_kernels_take_the_host_some_time(provider: Provider) -> None:
    submission = Submission.of(SMALL, "py", author="tester")
    setup = judge.Setup(load(PROBLEMS / "double"), submission, provider=provider, device="cuda", effort="quick")
    verdict = judge.grade(setup)
    assert (verdict.outcome, verdict.timing) == (Outcome.ACCEPTED, "replayed"), verdict.message
    for case in verdict.benchmarks:
        assert case.mode == "replayed"
        assert case.host_ns is not None
        assert 0 < case.host_ns < 1_000_000_000
        print(f"{case.name}: {case.host_ns} ns on the host, {case.score.median_ns} ns on the GPU")
    assert "the host takes " in "\n".join(show.run(verdict))
