"""Hidden tests run last of all, and of what a submission says from the first of them on only the outcomes are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.judge import Progress
from harness.problem import Case, load
from harness.problem.spec import Range
from harness.verdict import Check, Outcome, Stage
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.grading import checked, graded

PROBLEM = load(PROBLEMS / "double_hidden")
SLEPT_S = 1.0
# What a kernel does in a case of unknown size, the outcome that this is, and how many of the two cases were run.
RAISES = f"time.sleep({SLEPT_S}); raise RuntimeError(f'carried {{x.numel()}}')"
BEHAVIOURS = {
    "y.zero_()": (Outcome.WRONG_ANSWER, 2),
    RAISES: (Outcome.RUNTIME_ERROR, 2),
    "print(f'carried {x.numel()}', flush=True); sys.stderr.flush(); os._exit(77)": (Outcome.RUNTIME_ERROR, 1),
    "print('carried 77' * 100_000)": (Outcome.RUNTIME_ERROR, 1),
}


def kernel(behaviour: str) -> str:
    return f"""
import os, sys, time
def twice(x, y):
    y.copy_(2 * x)
    if x.numel() not in (1, 1009, 65536, 1_000_000):
        {behaviour}
"""


def keeps_nothing(check: Check, behaviour: str) -> None:
    outcome, run = BEHAVIOURS[behaviour]
    kind = outcome.replace("_", " ")
    assert (check.outcome, check.stage) == (outcome, Stage.HIDDEN)
    assert check.message == f"test hidden 1: {kind}" + (f" ({2 - run} not run)" if run < 2 else "")
    assert [(case.name, case.message) for case in check.tests[3:]] == [(f"hidden {i + 1}", kind) for i in range(run)]
    assert len(check.seeds) == 3, "a hidden case's seed is not published"
    for secret in ("carried", "77", "78", "Error:"):
        for text in (check.message, check.log, check.traceback, *(case.message for case in check.tests)):
            assert secret not in text


@pytest.mark.parametrize(
    "behaviour", [pytest.param(each, marks=() if each == RAISES else pytest.mark.full) for each in BEHAVIOURS]
)
def test_nothing_that_is_said_in_a_hidden_test_is_kept(behaviour: str) -> None:
    keeps_nothing(checked(PROBLEM, kernel(behaviour)), behaviour)


@pytest.mark.full
def test_a_grading_tells_nothing_of_how_long_a_hidden_test_takes() -> None:
    steps: list[Progress] = []
    started = time.perf_counter_ns()
    verdict = graded(PROBLEM, kernel(RAISES), on_progress=steps.append)
    took_ns = time.perf_counter_ns() - started
    keeps_nothing(verdict, RAISES)
    assert verdict.score is None
    assert [benchmark.name for benchmark in verdict.benchmarks] == ["a million"], "the times were taken before"
    stages = list(dict.fromkeys(step.stage for step in steps))
    assert stages == [Stage.BUILD, Stage.TEST, Stage.TIME, Stage.HIDDEN]
    assert [step.label for step in steps if step.stage is Stage.HIDDEN] == ["tests"], "not how long each of them takes"
    assert verdict.duration_ns < took_ns - 1.8 * SLEPT_S * 1e9, "what hidden tests take would tell of their sizes"
    assert time.time() - verdict.created_at.timestamp() > 1.8 * SLEPT_S


def test_an_honest_kernel_passes_them() -> None:
    verdict = graded(PROBLEM, kernel("pass"))
    assert (verdict.outcome, verdict.stage, len(verdict.tests)) == (Outcome.ACCEPTED, Stage.HIDDEN, 5)


def test_nothing_is_timed_where_a_visible_test_is_wrong() -> None:
    verdict = graded(PROBLEM, "def twice(x, y): pass\n")
    assert (verdict.outcome, verdict.stage, len(verdict.tests)) == (Outcome.WRONG_ANSWER, Stage.HIDDEN, 5)
    assert verdict.message.startswith("test one: ")
    assert verdict.benchmarks == ()


@pytest.mark.full
def test_private_cases_are_graded_and_told_by_their_number(tmp_path: Path) -> None:
    case = "devices = ['cpu']\n[[tests]]\nname = 'on a GPU'\nparams = { n = 816 }\ndevices = ['cuda']\n"
    text = f"salt = '{'0' * 32}'\n[[tests]]\nname = 'unknown to all'\nparams = {{ n = 815 }}\n{case}"
    (tmp_path / "double_hidden.toml").write_text(text)
    problem = load(PROBLEM.directory, tmp_path)
    check = checked(problem, kernel("y.mul_(2 if x.numel() == 815 else 1)"))
    assert (check.outcome, check.message) == (Outcome.WRONG_ANSWER, "test hidden 3: wrong answer")
    assert [(test.name, test.params) for test in check.tests[3:]] == [(f"hidden {i}", {}) for i in (1, 2, 3)]
    assert (check.problem.sha256, check.problem.private.cases) == (problem.sha256, 1)
    assert not any(secret in check.model_dump_json() for secret in ("unknown to all", "on a GPU"))


def test_sizes_are_drawn_for_each_grading_and_told_of_visible_cases_alone() -> None:
    ranges = {"n": Range(low=2, high=2_000_000, multiple_of=2)}
    visible, hidden = Case(name="drawn", draw=ranges), Case(name="secret", draw=ranges, hidden=True)
    problem = PROBLEM.model_copy(update={"tests": (hidden, visible)})
    checks = [checked(problem, kernel("pass")) for _ in range(2)]
    assert [check.outcome for check in checks] == [Outcome.ACCEPTED] * 2
    drawn = [check.tests[0].params["n"] for check in checks]
    assert len(set(drawn)) == 2, "one in a million"
    assert all(isinstance(n, int) and 2 <= n <= 2_000_000 and n % 2 == 0 for n in drawn)
    assert [(check.tests[1].name, check.tests[1].params) for check in checks] == [("hidden 1", {})] * 2


@pytest.mark.parametrize("grade", [checked, graded])
def test_a_grading_without_hidden_tests_is_of_the_same_problem_and_tries_none_of_them(
    grade: Callable[..., Check],
) -> None:
    wrong_there = "y.zero_()"
    result = grade(PROBLEM, kernel(wrong_there), hidden=False)
    assert (result.outcome, result.tests_not_run, result.problem.sha256) == (Outcome.ACCEPTED, 0, PROBLEM.sha256)
    assert [case.name for case in result.tests] == ["one", "prime", "pages"]
    assert grade(PROBLEM, kernel(wrong_there)).outcome is Outcome.WRONG_ANSWER, "and with them it is seen"
