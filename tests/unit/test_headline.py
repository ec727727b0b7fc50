"""What the tests of a grading come to: its outcome, its most informative test, and what it says of lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.judge.correctness.cases import Findings
from harness.problem import ResolvedCase, load
from harness.verdict import Budget, CaseResult, Mismatch, Outcome, OutputCheck
from harness.verdict.case import most_informative, outcome_of
from kernelmark.text import show
from tests.verdicts import failed

W, R, T, M, J, U, A = (
    Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT, Outcome.MEMORY_LIMIT, Outcome.REJECTED,
    Outcome.UNSUPPORTED, Outcome.ACCEPTED,
)  # fmt: skip


def case(outcome: Outcome, name: str = "a", *wrong_of: tuple[int, int], message: str = "why") -> CaseResult:
    outputs = tuple(
        OutputCheck(
            output=f"y{i}", dtype="int32", correct=False,
            mismatch=Mismatch(output=f"y{i}", shape=(total,), dtype="int32", wrong=wrong, total=total),
        )
        for i, (wrong, total) in enumerate(wrong_of)
    )  # fmt: skip
    return CaseResult(name=name, outcome=outcome, message="" if outcome is A else message, outputs=outputs)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], A),
        ([A, A], A),
        ([W] + [R] * 11, R),
        ([R] + [W] * 11, W),
        ([A] * 9 + [W, R], R),
        ([R, T], T),
        ([T, M], M),
        ([J] + [W] * 11, J),
        ([U] * 12, U),
        ([U] * 11 + [W], W),
        ([U] * 10 + [A, A], U),
    ],
)
def test_the_headline_is_the_most_frequent_outcome(outcomes: list[Outcome], expected: Outcome) -> None:
    assert outcome_of([case(outcome) for outcome in outcomes]) is expected
    assert outcome_of([case(outcome) for outcome in reversed(outcomes)]) is expected


def test_the_test_with_the_smallest_share_of_wrong_elements_is_the_most_informative() -> None:
    all_wrong, one_element = case(W, "all", (2, 2)), case(W, "one", (1, 1))
    few, later = case(W, "few", (900, 1000), (3, 1000)), case(W, "later", (3, 1000))
    hidden = CaseResult(name="hidden 1", hidden=True, outcome=W, message="wrong answer")
    assert most_informative([hidden, one_element, all_wrong, few, later]).name == "few"
    assert most_informative([hidden, one_element]).name == "one"
    assert most_informative([hidden]).name == "hidden 1"
    assert most_informative([case(R, "first"), case(R, "second")]).name == "first"


def test_the_table_is_of_the_output_that_is_most_informative() -> None:
    tests = (case(R, "odd"), case(W, "one", (1, 1)), case(W, "all", (2, 2)), case(W, "few", (900, 1000), (3, 1000)))
    result = failed(W).model_copy(update={"tests": tests, "message": "test one: why (2 not run)"})
    shown = "\n".join(show.check(result))
    headline = "wrong answer: test few: why (2 not run)"
    assert shown.startswith(f"{headline}\n"), "the headline is about the test of the table"
    assert next(show.verdict(result)) == next(show.run(result)) == headline
    assert "y1 [1000] int32 in few: 3 of 1,000 elements wrong" in shown
    assert shown.count("elements wrong") == 1
    other = failed(R).model_copy(update={"tests": (*tests, case(R, "even")), "message": "test odd: why"})
    assert next(show.check(other)) == "runtime error: test odd: why", "the headline of another outcome stays"


HIDDEN = [CaseResult(name=f"hidden {i}", hidden=True, outcome=R, message="runtime error") for i in (1, 2)]


@pytest.mark.parametrize(
    ("tests", "not_run", "expected"),
    [
        ([case(R, "a"), case(R, "b")], 0, ["all 2 tests in the same way"]),
        ([case(R, "a"), case(R, "b"), *HIDDEN], 0, ["all 2 tests in the same way, and 2 hidden tests"]),
        ([case(R, "a"), case(R, "b")], 1, ["2 tests (a, b): runtime error: why"]),
        ([case(R, "a"), case(R, "b"), case(A, "c")], 0, ["2 tests (a, b): runtime error: why"]),
        ([case(R, "a"), case(R, "b", message="other")], 0, ["a: runtime error: why", "b: runtime error: other"]),
        (
            [case(W, "a"), case(W, "b"), HIDDEN[0]],
            0,
            ["2 tests (a, b): wrong answer: why", "hidden 1 (hidden): runtime error"],
        ),
        (
            [*(case(R, f"t{i}") for i in range(11)), case(W, "odd", (1, 2)), *HIDDEN],
            0,
            [
                "11 tests (t0, t1, t2, t3, ...): runtime error: why",
                "odd: wrong answer: why",
                "2 hidden tests (hidden 1, hidden 2): runtime error",
            ],
        ),
        ([case(R, "a")], 0, ["a: runtime error: why"]),
    ],
)
def test_a_shared_reason_is_shown_once(tests: list[CaseResult], not_run: int, expected: list[str]) -> None:
    result = failed(R).model_copy(update={"tests": tuple(tests), "tests_not_run": not_run})
    lines = [line.split("failed      ")[1] for line in show.check(result) if "failed      " in line]
    assert len(lines) == len(expected)
    assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True)), lines


def test_an_output_that_was_never_written_has_no_table_of_random_bytes_and_no_errors() -> None:
    budget = Budget(error=1e30, allowed=1e-6, reference_error=0, factor=4, floor=1e-6)
    unwritten = Mismatch(
        output="y", shape=(9,), dtype="float32", wrong=5, total=9, nan_got=2, whole="unwritten",
        hints=("output never written",),
    )  # fmt: skip
    output = OutputCheck(output="y", dtype="float32", correct=False, max_error=budget, mismatch=unwritten)
    tests = [
        CaseResult(name=name, outcome=W, message="y: never written", outputs=(output,)) for name in ("one", "primes")
    ]
    shown = list(show.check(failed(W).model_copy(update={"tests": tuple(tests)})))
    assert shown[4:7] == [
        "  failed      all 2 tests in the same way",
        "  output      y [9] float32 in one: none of 9 elements was written",
        "    hint: output never written",
    ]
    assert not any("error" in line or "NaN" in line for line in shown)
    stopped = failed(T).model_copy(update={"tests": (case(T, "first"),), "tests_not_run": 11})
    assert "  tests       0 of 12 right, 11 not run" in list(show.check(stopped)), "those not run are counted"


# ---- lists of tensors

PROBLEM = load(Path(__file__).parents[2] / "problems" / "adam_multi_tensor")


MANY = PROBLEM.resolve(next(case for case in PROBLEM.tests if case.name == "many tiny tensors"))


def check(name: str, error: float = 1e-8, *, correct: bool = True) -> OutputCheck:
    budget = Budget(error=error, allowed=1e-6, reference_error=1e-8, factor=4.0, floor=1e-6)
    wrong = None if correct else Mismatch(output=name, shape=(1,), dtype="float32", wrong=1, total=1)
    return OutputCheck(output=name, dtype="float32", correct=correct, max_error=budget, mismatch=wrong)


def test_of_a_list_the_member_nearest_to_its_budget_is_kept() -> None:
    checks = [check(tensor.name, 9e-7 if tensor.name.endswith("[7]") else 1e-8) for tensor in MANY.tensors]
    kept = findings(MANY, checks).kept
    assert len(checks) > 300
    assert [check.output for check in kept] == ["params[7]", "grads[7]", "means[7]", "squares[7]"]


def test_of_a_list_the_first_wrong_members_are_kept_and_one_that_is_right() -> None:
    found = findings(MANY, [check(f"params[{i}]", correct=i % 2 == 0) for i in range(4)])
    assert found.first_wrong.output == "params[1]"
    assert not found.enough("params[4]")
    found.add(check("params[5]", correct=False))
    assert found.enough("params[6]"), "three are kept, and the others are not looked at"
    assert not found.enough("means[0]"), "which is in another list"
    assert [check.output for check in found.kept] == ["params[0]", "params[1]", "params[3]", "params[5]"]


def test_all_checks_of_tensors_outside_lists_are_kept() -> None:
    problem = load(PROBLEM.directory.parent / "layernorm_backward")
    resolved = problem.resolve(problem.tests[0])
    checks = [check(tensor.name) for tensor in resolved.tensors]
    assert findings(resolved, checks).kept == list(checks)
    assert findings(resolved, checks).first_wrong is None


def findings(of: ResolvedCase, checks: Sequence[OutputCheck]) -> Findings:
    found = Findings(of)
    for each in checks:
        found.add(each)
    return found
