"""Tolerances in steps of an output's dtype: what is accepted, and how a wrong output is explained."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from harness.compare import beyond_steps, check_by, describe, hints
from harness.problem.elements import widened
from harness.problem.tolerance import Tolerance

INF, NAN = float("inf"), float("nan")


def next_to(values: list[float], dtype: torch.dtype, steps: int) -> Tensor:
    """Positive floats, and those that many places above them."""
    exact = torch.tensor(values).to(dtype)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[exact.element_size()]
    return (exact.view(bits) + steps).view(dtype)


def right(got: Tensor, truth: Tensor, **tolerance: object) -> bool:
    return beyond_steps(got, widened(truth), Tolerance.model_validate(tolerance)) is None


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.uint16, torch.bool])
def test_whole_numbers_may_be_off_by_some(dtype: torch.dtype) -> None:
    truth = torch.tensor([0, 1, 1, 0]).to(dtype)
    near, far = truth.clone(), torch.tensor([0, 3, 1, 0]).to(dtype)
    near[0] = 1
    assert right(near, truth, off_by=1)
    assert not right(near, truth, off_by=0)
    assert right(far, truth, off_by=1) is (dtype is torch.bool), "three is true"


def test_the_ends_of_int64_are_far_apart() -> None:
    ends = torch.tensor([torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max])
    assert not right(ends.flip(0), ends, off_by=1)
    assert right(ends, ends, off_by=1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_floats_may_be_off_by_steps_to_the_next_one(dtype: torch.dtype) -> None:
    truth = next_to([1.0, 0.5, 448.0 / 4], dtype, 0)
    assert right(next_to([1.0, 0.5, 448.0 / 4], dtype, 2), truth, off_by=2)
    assert not right(next_to([1.0, 0.5, 448.0 / 4], dtype, 3), truth, off_by=2)


def test_zeros_are_equal_and_no_number_is_near_infinity_or_nan() -> None:
    largest = torch.finfo(torch.float32).max
    assert right(torch.tensor([-0.0, INF, NAN]), torch.tensor([0.0, INF, NAN]), off_by=0)
    assert right(torch.tensor([1e-45]), torch.tensor([-1e-45]), off_by=2), "across zero"
    assert not right(torch.tensor([1e-45]), torch.tensor([-1e-45]), off_by=1)
    for got, truth in ((largest, INF), (INF, largest), (NAN, largest), (0.0, NAN), (-INF, INF)):
        assert not right(torch.tensor([got]), torch.tensor([truth]), off_by=2**31 - 1)


def test_scales_step_by_a_factor_of_two() -> None:
    def scales(*exponents: int) -> Tensor:
        return torch.tensor([e + 127 for e in exponents], dtype=torch.uint8).view(torch.float8_e8m0fnu)

    assert right(scales(0, -3), scales(1, -4), off_by=1)
    assert not right(scales(0, -3), scales(2, -4), off_by=1)
    assert not right(scales(127), scales(128), off_by=1), "NaN"


def test_only_a_share_may_be_off_in_each_call() -> None:
    truth = torch.zeros(2, 1000, dtype=torch.int8)
    got = truth.clone()
    got[0, :3] = 1
    tolerance = Tolerance.model_validate({"off_by": 1, "share": 0.003})
    assert beyond_steps(got, truth, tolerance, calls=2) is None
    got[0, 3] = -1
    assert int(beyond_steps(got, truth, tolerance, calls=2).sum()) == 4
    got[1, 7] = 2
    assert beyond_steps(got, truth, tolerance, calls=2).nonzero().tolist() == [[1007]], (
        "what is too far off comes first"
    )


def test_a_share_is_not_one_less_for_a_rounding_error() -> None:
    """0.29 × 100 is 28.999999999999996."""
    truth, tolerance = torch.zeros(100, dtype=torch.int8), Tolerance.model_validate({"off_by": 1, "share": 0.29})
    got = (torch.arange(100) < 29).to(torch.int8)
    assert beyond_steps(got, truth, tolerance) is None
    assert beyond_steps((torch.arange(100) < 30).to(torch.int8), truth, tolerance) is not None


def test_a_wrong_output_is_explained_by_the_rule() -> None:
    truth = torch.zeros(4, 500, dtype=torch.int8)
    got = truth.clone()
    got[2, 7] = 3
    tolerance = Tolerance.model_validate({"q": {"off_by": 1, "share": 0.01}}).of_output("q")
    found = check_by(tolerance)("q", got, truth, truth, tolerance)
    assert not found.correct
    assert found.mismatch.allowed == "1 step of int8, or more than 1 % are off"
    assert "1 of 2,000 elements" in describe(found)
    assert check_by(tolerance)("q", truth, truth, truth, tolerance).correct
    exact = Tolerance.model_validate({"r": {"off_by": 0}}).of_output("r")
    residual = torch.full((4, 500), 1.0)
    found = check_by(exact)("r", residual.nextafter(torch.tensor(2.0)), residual.double(), residual, exact)
    assert found.mismatch.allowed == "0 steps of float32"


def test_offsets_that_overflow_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_INT32", 1000)
    truth = torch.arange(4000, dtype=torch.int32).view(4, 1000)
    got = truth.clone()
    got[1:] = 7
    found = check_by(Tolerance())("y", got, truth, truth, Tolerance())
    assert any("right up to element 2³¹" in hint for hint in found.mismatch.hints)
    got[0, 999] = 7
    found = check_by(Tolerance())("y", got, truth, truth, Tolerance())
    assert not any("2³¹" in hint for hint in found.mismatch.hints)
