"""What a verdict says of a list of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.judge.correctness.cases import Findings
from harness.problem import ResolvedCase, load
from harness.verdict import Budget, Mismatch, OutputCheck

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


def test_what_is_no_list_is_kept_whole() -> None:
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
