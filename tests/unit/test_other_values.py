"""Timed calls on other values: those of a problem's tests, at the sizes of its benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.compare import check_output
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.timing import dealt_values
from harness.judge.timing.dealt_values import DealtValues
from harness.kinds import DeviceKind
from harness.problem import Problem, ResolvedCase, load
from harness.problem.reference import Reference
from tests.shipped import ROOT

SOFTMAX = load(ROOT / "problems/softmax")


def of(problem: Problem, benchmark: int = 0, device: DeviceKind = "cpu") -> Sequence[ResolvedCase]:
    cases = [case for case in problem.benchmarks if device in case.devices]
    return problem.other_values(problem.resolve(cases[benchmark]), device)


def test_they_have_the_sizes_of_the_benchmark_and_the_fills_of_the_tests() -> None:
    found = of(SOFTMAX)
    assert [each.name for each in found] == [
        "large magnitudes", "large and positive", "partly masked", "wholly masked rows", "hidden magnitudes",
    ]  # fmt: skip
    assert {tuple(each.params.items()) for each in found} == {(("rows", 128), ("cols", 256))}
    assert [each.tensors[0].fill.neg_inf for each in found] == [0, 0, 0.3, 0.5, 0.05]
    assert [each.hidden for each in found] == [False] * 4 + [True]


def test_tests_of_another_device_do_not_count() -> None:
    assert {"a vocabulary, masked", "long rows, large magnitudes"} == {
        each.name for each in of(SOFTMAX, device="cuda")
    } - {each.name for each in of(SOFTMAX)}


def test_where_a_benchmark_has_values_of_its_own_the_usual_ones_are_others() -> None:
    first, *_ = of(load(ROOT / "problems/topk_ties"))
    assert first.tensors[0].fill.kind == "integers"


def test_what_the_dtype_cannot_hold_is_left_out() -> None:
    layernorm = load(ROOT / "problems/layernorm")
    magnitude = next(case for case in layernorm.tests if case.name == "far from zero")
    wide = magnitude.fill["x"].model_copy(update={"mean": 60_000.0, "scale": 1e4})
    test = magnitude.model_copy(update={"fill": {"x": wide}, "name": "wide"})
    problem = layernorm.model_copy(update={"tests": (test,)})
    assert [each.name for each in of(problem, 0)] == ["wide"], "float32"
    assert [each.name for each in of(problem, 1)] == [], "float16"


@pytest.mark.parametrize(("values", "taken"), [((0, 1023), True), ((0, 1024), False), ((-1, 5), False)])
def test_indices_stay_within_those_of_the_benchmark(values: tuple[int, int], taken: bool) -> None:
    entropy = load(ROOT / "problems/cross_entropy")  # 1,024 classes in its first benchmark
    ends = next(case for case in entropy.tests if "target" in case.fill)
    fill = {"target": ends.fill["target"].model_copy(update={"values": values})}
    problem = entropy.model_copy(update={"tests": (ends.model_copy(update={"fill": fill}),)})
    assert bool(of(problem)) is taken


def test_options_of_generate_are_values_too() -> None:
    shares = [case.options for case in of(load(ROOT / "problems/segment_scan"))]
    assert {"share": 0.01} in shares


def test_other_values_are_dealt_once_and_differ_between_cases() -> None:
    softmax: Any = Reference.load(SOFTMAX)
    first, second = (
        GradedCase(SOFTMAX, softmax, "cpu", SOFTMAX.resolve(case))
        for case in SOFTMAX.benchmarks
        if "cpu" in case.devices
    )
    dealt = DealtValues()
    deal, other = dealt.dealer_for(first), dealt.dealer_for(second)
    had = [each.name for each in deal(2)]
    assert len(set(had)) == 2
    assert not {each.name for each in other(3)} & set(had)
    assert {each.name for each in deal(9)} == {other_value.name for other_value in first.other_values} - set(had)
    assert deal(1) == []


def test_the_order_of_other_values_is_random() -> None:
    case = GradedCase(SOFTMAX, Reference.load(SOFTMAX), "cpu", SOFTMAX.resolve(SOFTMAX.benchmarks[0]))
    firsts = {DealtValues().dealer_for(case)(1)[0].name for _ in range(100)}
    assert len(firsts) > 1, "each of five is first in 100 draws with a probability of 1e-69"


def test_every_shipped_benchmark_has_others() -> None:
    lacking = []
    for folder in sorted((ROOT / "problems").glob("*/problem.toml")):
        problem = load(folder.parent)
        for case in problem.benchmarks:
            for device in case.devices:
                if not problem.other_values(problem.resolve(case), device):
                    lacking.append(f"{problem.slug}: {case.name}")
    assert lacking == []


@pytest.mark.parametrize(
    ("reference_error", "got", "wrong"),
    [
        (0.001, 0.07, True),  # 17 times what is allowed
        (0.001, 0.05, False),
        (0.1, 0.7, True),  # more than half of the value
        (0.2, 0.7, False),  # 4 × 0.2 is beyond what is ever allowed
        (0.2, float("nan"), True),
    ],
)
def test_only_large_errors_count_given_a_good_reference(reference_error: float, got: float, wrong: bool) -> None:
    case = SOFTMAX.resolve(SOFTMAX.benchmarks[0])
    truth: Any = SimpleNamespace(case=case, reference=SimpleNamespace(compares=False))
    exact = torch.ones(8, 16, dtype=torch.float64)
    given, honest = exact.float(), exact.float()
    given[0, 0], honest[3, 3] = 1 + got, 1 + reference_error
    checked = check_output("y", given, exact, honest, case.tolerance)
    # The RMS of one element among 128 is below what the maximum allows.
    assert not checked.correct
    assert dealt_values._is_wrong(checked, truth) is wrong


def test_an_infinity_in_another_place_is_wrong() -> None:
    case = SOFTMAX.resolve(SOFTMAX.benchmarks[0])
    truth: Any = SimpleNamespace(case=case, reference=SimpleNamespace(compares=False))
    exact = torch.ones(8, 16, dtype=torch.float64)
    given = exact.float()
    exact[0, 0] = given[0, 1] = torch.inf
    checked = check_output("y", given, exact, exact.float(), case.tolerance)
    assert dealt_values._is_wrong(checked, truth)
