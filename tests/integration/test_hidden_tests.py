"""Hidden tests run last of all, and of what a submission says from the first of them on only the outcomes are kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness import judge
from harness.judge import Progress
from harness.problem import load
from harness.sandbox import provider
from harness.submission import Submission
from harness.verdict import Outcome, Stage

PROBLEM = load(Path(__file__).parents[1] / "problems" / "double_hidden")
SLEPT_S = 3.0
# What a kernel does in a case of unknown size, the outcome that this is, and how many of the two cases were run.
BEHAVIOURS = {
    "y.zero_()": (Outcome.WRONG_ANSWER, 2),
    f"time.sleep({SLEPT_S}); raise RuntimeError(f'carried {{x.numel()}}')": (Outcome.RUNTIME_ERROR, 2),
    "print(f'carried {x.numel()}', flush=True); sys.stderr.flush(); os._exit(77)": (Outcome.RUNTIME_ERROR, 1),
    "print('carried 77' * 100_000)": (Outcome.RUNTIME_ERROR, 1),
}


def kernel(behaviour: str) -> Submission:
    source = f"""
import os, sys, time
def twice(x, y):
    y.copy_(2 * x)
    if x.numel() not in (1, 1009, 65536, 1_000_000):
        {behaviour}
"""
    return Submission.of(source, "py", author="tester")


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_nothing_that_is_said_in_a_hidden_test_is_kept(behaviour: str) -> None:
    outcome, run = BEHAVIOURS[behaviour]
    steps: list[Progress] = []
    started = time.perf_counter_ns()
    verdict = judge.grade(
        PROBLEM, kernel(behaviour), provider=provider("process"), device="cpu", effort="quick", on_progress=steps.append
    )
    took_ns = time.perf_counter_ns() - started
    kind = outcome.replace("_", " ")
    assert (verdict.outcome, verdict.stage, verdict.score) == (outcome, Stage.HIDDEN, None)
    assert verdict.message == f"test hidden 1: {kind}"
    assert [(case.name, case.message) for case in verdict.tests[3:]] == [(f"hidden {i + 1}", kind) for i in range(run)]
    assert len(verdict.seeds) == 3, "a hidden case's seed is not published"
    assert [each.name for each in verdict.benchmarks] == ["a million"], "the times were taken before"
    for secret in ("carried", "77", "78", "Error:"):
        for text in (verdict.message, verdict.log, verdict.traceback, *(case.message for case in verdict.tests)):
            assert secret not in text
    stages = list(dict.fromkeys(step.stage for step in steps))
    assert stages == [Stage.BUILD, Stage.TEST, Stage.TIME, Stage.SEAL, Stage.HIDDEN]
    assert not any("secret" in step.label for step in steps)
    if "sleep" in behaviour:
        assert verdict.duration_ns < took_ns - 1.8 * SLEPT_S * 1e9, "what hidden tests take would tell of their sizes"
        assert time.time() - verdict.created_at.timestamp() > 1.8 * SLEPT_S


def test_a_check_ends_with_the_hidden_tests() -> None:
    check = judge.check(PROBLEM, kernel("raise RuntimeError('carried')"), provider=provider("process"), device="cpu")
    assert (check.outcome, check.stage, check.message) == (
        Outcome.RUNTIME_ERROR, Stage.HIDDEN, "test hidden 1: runtime error",
    )  # fmt: skip
    assert (check.traceback, len(check.tests), len(check.seeds)) == ("", 5, 3)


def test_an_honest_kernel_passes_them() -> None:
    verdict = judge.grade(PROBLEM, kernel("pass"), provider=provider("process"), device="cpu", effort="quick")
    assert (verdict.outcome, verdict.stage, len(verdict.tests)) == (Outcome.ACCEPTED, Stage.HIDDEN, 5)


def test_nothing_is_timed_where_a_visible_test_is_wrong() -> None:
    wrong = Submission.of("def twice(x, y): pass\n", "py", author="tester")
    verdict = judge.grade(PROBLEM, wrong, provider=provider("process"), device="cpu", effort="quick")
    assert (verdict.outcome, verdict.stage, len(verdict.tests)) == (Outcome.WRONG_ANSWER, Stage.HIDDEN, 5)
    assert verdict.message.startswith("test one: ")
    assert verdict.benchmarks == ()
