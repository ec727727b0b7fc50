"""Hidden tests run last of all, and of what a submission says from the first of them on only the outcomes are kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness import judge
from harness.judge import Progress
from harness.problem import Case, load
from harness.problem.spec import Range
from harness.sandbox import provider
from harness.submission import Submission
from harness.verdict import Outcome, Stage
from kernelmark.diagnostics.selftest import PROBLEMS

PROBLEM = load(PROBLEMS / "double_hidden")
SLEPT_S = 1.0
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


@pytest.mark.full
@pytest.mark.parametrize(
    "behaviour", [pytest.param(each, marks=() if "sleep" in each else pytest.mark.full) for each in BEHAVIOURS]
)
def test_nothing_that_is_said_in_a_hidden_test_is_kept(behaviour: str) -> None:
    outcome, run = BEHAVIOURS[behaviour]
    steps: list[Progress] = []
    started = time.perf_counter_ns()
    verdict = judge.grade(
        judge.Setup(
            PROBLEM,
            kernel(behaviour),
            provider=provider("process"),
            device="cpu",
            effort="quick",
            on_progress=steps.append,
        )
    )
    took_ns = time.perf_counter_ns() - started
    kind = outcome.replace("_", " ")
    assert (verdict.outcome, verdict.stage, verdict.score) == (outcome, Stage.HIDDEN, None)
    assert verdict.message == f"test hidden 1: {kind}" + (f" ({2 - run} not run)" if run < 2 else "")
    assert [(case.name, case.message) for case in verdict.tests[3:]] == [(f"hidden {i + 1}", kind) for i in range(run)]
    assert len(verdict.seeds) == 3, "a hidden case's seed is not published"
    assert [each.name for each in verdict.benchmarks] == ["a million"], "the times were taken before"
    for secret in ("carried", "77", "78", "Error:"):
        for text in (verdict.message, verdict.log, verdict.traceback, *(case.message for case in verdict.tests)):
            assert secret not in text
    stages = list(dict.fromkeys(step.stage for step in steps))
    assert stages == [Stage.BUILD, Stage.TEST, Stage.TIME, Stage.HIDDEN]
    assert [step.label for step in steps if step.stage is Stage.HIDDEN] == ["tests"], "not how long each of them takes"
    if "sleep" in behaviour:
        assert verdict.duration_ns < took_ns - 1.8 * SLEPT_S * 1e9, "what hidden tests take would tell of their sizes"
        assert time.time() - verdict.created_at.timestamp() > 1.8 * SLEPT_S


def test_a_check_ends_with_the_hidden_tests() -> None:
    check = judge.check(
        judge.Setup(PROBLEM, kernel("raise RuntimeError('carried')"), provider=provider("process"), device="cpu")
    )
    assert (check.outcome, check.stage, check.message) == (
        Outcome.RUNTIME_ERROR, Stage.HIDDEN, "test hidden 1: runtime error",
    )  # fmt: skip
    assert (check.traceback, len(check.tests), len(check.seeds)) == ("", 5, 3)


def test_an_honest_kernel_passes_them() -> None:
    verdict = judge.grade(
        judge.Setup(PROBLEM, kernel("pass"), provider=provider("process"), device="cpu", effort="quick")
    )
    assert (verdict.outcome, verdict.stage, len(verdict.tests)) == (Outcome.ACCEPTED, Stage.HIDDEN, 5)


def test_nothing_is_timed_where_a_visible_test_is_wrong() -> None:
    wrong = Submission.of("def twice(x, y): pass\n", "py", author="tester")
    verdict = judge.grade(judge.Setup(PROBLEM, wrong, provider=provider("process"), device="cpu", effort="quick"))
    assert (verdict.outcome, verdict.stage, len(verdict.tests)) == (Outcome.WRONG_ANSWER, Stage.HIDDEN, 5)
    assert verdict.message.startswith("test one: ")
    assert verdict.benchmarks == ()


@pytest.mark.full
def test_private_cases_are_graded_and_told_by_their_number(tmp_path: Path) -> None:
    case = "devices = ['cpu']\n[[tests]]\nname = 'on a GPU'\nparams = { n = 816 }\ndevices = ['cuda']\n"
    text = f"salt = '{'0' * 32}'\n[[tests]]\nname = 'unknown to all'\nparams = {{ n = 815 }}\n{case}"
    (tmp_path / "double_hidden.toml").write_text(text)
    problem = load(PROBLEM.directory, tmp_path)
    wrong = "y.mul_(2 if x.numel() == 815 else 1)"
    check = judge.check(judge.Setup(problem, kernel(wrong), provider=provider("process"), device="cpu"))
    assert (check.outcome, check.message) == (Outcome.WRONG_ANSWER, "test hidden 3: wrong answer")
    assert [(each.name, each.params) for each in check.tests[3:]] == [(f"hidden {i}", {}) for i in (1, 2, 3)]
    assert check.problem.private is not None
    assert (check.problem.sha256, check.problem.private.cases) == (problem.sha256, 1)
    assert not any(secret in check.model_dump_json() for secret in ("unknown to all", "on a GPU"))


def test_sizes_are_drawn_for_each_grading_and_told_of_visible_cases_alone() -> None:
    ranges = {"n": Range(low=2, high=2_000_000, multiple_of=2)}
    visible, hidden = Case(name="drawn", draw=ranges), Case(name="secret", draw=ranges, hidden=True)
    problem = PROBLEM.model_copy(update={"tests": (hidden, visible)})
    checks = [
        judge.check(judge.Setup(problem, kernel("pass"), provider=provider("process"), device="cpu")) for _ in range(2)
    ]
    assert [check.outcome for check in checks] == [Outcome.ACCEPTED] * 2
    drawn = [check.tests[0].params["n"] for check in checks]
    assert len(set(drawn)) == 2, "one in a million"
    assert all(isinstance(n, int) and 2 <= n <= 2_000_000 and n % 2 == 0 for n in drawn)
    assert [(check.tests[1].name, check.tests[1].params) for check in checks] == [("hidden 1", {})] * 2
