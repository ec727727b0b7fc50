"""Fixed tolerances, as `torch.allclose` has them, for every element type."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from harness.compare import check_close, describe, is_close
from harness.problem.dtypes import DTYPES
from harness.problem.elements import of_numbers, parts, widened
from harness.problem.spec import Tolerance

TOLERANCE = Tolerance(rtol=0.125, atol=0.0)
_ALL = [getattr(torch, name) for name in DTYPES]


def values(dtype: torch.dtype, *each: float) -> Tensor:
    """Elements whose first part is as given; the second part of complex and packed ones is 1."""
    first = torch.tensor(each, dtype=torch.float64)
    return of_numbers(torch.stack([first, torch.ones(len(each))], dim=-1) if parts(dtype) == 2 else first, dtype)


@pytest.mark.parametrize("dtype", _ALL)
def test_the_same_is_close_and_twice_as_much_is_not(dtype: torch.dtype) -> None:
    high = 1 if dtype is torch.bool else 2
    truth, poison = widened(values(dtype, 1, 1, high)), values(dtype, 0, 0, 0)
    right, wrong = values(dtype, 1, 1, high), values(dtype, 1, 0 if dtype is torch.bool else 2, high)
    assert is_close(right, truth, TOLERANCE)
    accepted = check_close("y", right, truth, right, TOLERANCE, poison)
    assert accepted.correct
    assert accepted.share_of_budget == 0
    assert not is_close(wrong, truth, TOLERANCE)
    refused = check_close("y", wrong, truth, right, TOLERANCE, poison)
    assert not refused.correct
    assert refused.mismatch is not None
    assert refused.mismatch.wrong == 1
    assert describe(refused).endswith(": further from what is expected than 0 + 0.125 × |expected|")


def test_what_is_close_may_be_beyond_the_budget() -> None:
    truth = torch.ones(8, dtype=torch.float64)
    accepted = check_close("y", torch.full((8,), 1.0625), truth, torch.ones(8), TOLERANCE)
    assert accepted.correct
    assert accepted.share_of_budget == pytest.approx(0.0625 / (16 * 2**-23))


def test_complex_numbers_are_close_in_the_plane() -> None:
    truth = torch.tensor([100 + 0j], dtype=torch.complex128)
    got = torch.tensor([100 + 10j], dtype=torch.complex64)
    assert is_close(got, truth, TOLERANCE), "although 10 is far from an imaginary part of 0"
    assert not is_close(got + 10j, truth, TOLERANCE)


def test_packed_numbers_are_compared_one_by_one() -> None:
    truth = of_numbers(torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.float4_e2m1fn_x2)
    got = of_numbers(torch.tensor([[1.0, 4.0], [2.0, 2.0]]), torch.float4_e2m1fn_x2)
    assert is_close(got, truth, Tolerance(rtol=0.0, atol=3.0))
    assert not is_close(got, truth, Tolerance(rtol=0.0, atol=2.5))


def test_nothing_is_close_to_nothing() -> None:
    assert is_close(torch.empty(0, dtype=torch.complex64), torch.empty(0, dtype=torch.complex128), TOLERANCE)
