"""The effort "screen": the tests in the order of their size until one fails, then the largest benchmark case alone."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from harness.judge.timing import device_lock
from harness.judge.timing.plan import plan_for, replay_plan_for
from harness.problem import Case, Problem, load
from harness.submission import Submission
from harness.verdict import Effort, Outcome, Stage, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS
from tests import grading
from tests.runners import Script, Scripted, doubling

SUBMISSION = Submission.of("def twice(x, y): ...", "py", author="tester")
SIZES = {"middle": 1009, "large": 70_000, "small": 3}
HIDDEN = {"hidden small": 2, "hidden large": 90_000}
BENCHMARKS = {"short": 1000, "long": 50_000, "medium": 10_000}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other gradings on this machine are nobody's neighbours."""
    monkeypatch.setattr(device_lock, "_DIRECTORY", tmp_path)


@pytest.fixture(scope="module")
def problem() -> Problem:
    tests = [Case(name=name, params={"n": n}) for name, n in SIZES.items()]
    hidden = [Case(name=name, params={"n": n}, hidden=True) for name, n in reversed(HIDDEN.items())]
    timed = [Case(name=name, params={"n": n}) for name, n in BENCHMARKS.items()]
    changes = {"tests": (*hidden, *tests), "benchmarks": tuple(timed)}
    return load(PROBLEMS / "double_hidden").model_copy(update=changes)


def graded(problem: Problem, wrong_at: Set[int] = frozenset(), effort: Effort = "screen") -> tuple[Verdict, list[int]]:
    """The verdict, and the sizes that the runner was asked for, in order; it answers nothing at those of `wrong_at`."""
    asked: list[int] = []
    honest = doubling()

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Declare":
            [size] = body["arguments"][0]["shape"]
            asked.append(size)
        if body["kind"] == "Call" and asked[-1] in wrong_at:
            script.reply(token, "Done")
            return
        honest(script, token, body)

    verdict = grading.graded(problem, SUBMISSION, provider=Scripted(act), effort=effort)
    return verdict, list(dict.fromkeys(asked))


def test_a_right_submission_passes_all_tests_and_is_timed_on_the_largest_case(problem: Problem) -> None:
    verdict, asked = graded(problem)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert [test.name for test in verdict.tests] == ["small", "middle", "large", "hidden 1", "hidden 2"]
    assert [size for size in asked if size not in BENCHMARKS.values()] == [3, 1009, 70_000, 2, 90_000]
    assert [benchmark.name for benchmark in verdict.benchmarks] == ["long"]
    assert (verdict.effort, verdict.score.median_ns) == ("screen", verdict.benchmarks[0].score.median_ns)
    assert {1000, 10_000}.isdisjoint(asked)


@pytest.mark.parametrize(
    ("wrong_at", "tests", "message"),
    [
        ({3, 1009, 70_000}, ["small"], "(4 not run)"),
        pytest.param({1009}, ["small", "middle"], "(3 not run)", marks=pytest.mark.full),
        pytest.param({70_000}, ["small", "middle", "large"], "(2 not run)", marks=pytest.mark.full),
        pytest.param({2, 90_000}, ["small", "middle", "large", "hidden 1"], "(1 not run)", marks=pytest.mark.full),
        pytest.param({90_000}, ["small", "middle", "large", "hidden 1", "hidden 2"], "", marks=pytest.mark.full),
    ],
)
def test_a_screen_ends_with_the_first_test_that_fails(
    problem: Problem, wrong_at: set[int], tests: list[str], message: str
) -> None:
    verdict, asked = graded(problem, wrong_at)
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert [test.name for test in verdict.tests] == tests
    assert [test.outcome for test in verdict.tests[:-1]] == [Outcome.ACCEPTED] * (len(tests) - 1)
    assert verdict.message.startswith(f"test {tests[-1]}: ")
    assert verdict.message.endswith(message)
    assert verdict.tests_not_run == 5 - len(tests)
    hidden = tests[-1].startswith("hidden")
    assert (verdict.stage, verdict.score) == (Stage.HIDDEN if hidden else Stage.TEST, None)
    sizes = [SIZES[name] for name in tests if not name.startswith("hidden")]
    assert [size for size in asked if size in SIZES.values()] == sizes, "the runner was asked for nothing more"


def test_other_efforts_run_all_tests_in_the_problems_order(problem: Problem) -> None:
    verdict, _ = graded(problem, {3}, "quick")
    assert [test.name for test in verdict.tests] == ["middle", "large", "small", "hidden 1", "hidden 2"]
    assert [test.outcome for test in verdict.tests].count(Outcome.WRONG_ANSWER) == 1


def test_a_screen_takes_as_many_calls_as_the_quickest_effort() -> None:
    assert plan_for("cpu", "screen") == plan_for("cpu", "quick") != plan_for("cpu", "default")
    assert replay_plan_for("screen") == replay_plan_for("quick")
