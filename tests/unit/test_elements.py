"""Element types that torch hardly computes with: conversion, rounding, comparison and display."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from harness.compare import all_pass_fast_check, check_close, check_output, describe, is_close, passes_fast_check
from harness.problem.dtypes import DTYPES, FLOAT4_MAGNITUDES
from harness.problem.elements import (
    FLOAT4,
    SCALE,
    info,
    numbers,
    of_numbers,
    pack_float4,
    parts,
    rounded,
    same_bits,
    wide,
    widened,
)
from harness.problem.tolerance import Tolerance
from harness.shared.carrier import carrier
from harness.verdict import OutputCheck

_ALL = [getattr(torch, name) for name in DTYPES]
_ADDED = ("uint16", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu", "complex64", "complex128", "float4_e2m1fn_x2")


def random_bytes(dtype: torch.dtype, count: int = 256) -> torch.Tensor:
    """Any bit pattern, NaN and infinities included; a bool is 0 or 1."""
    generator = torch.Generator().manual_seed(1)
    most = 2 if dtype is torch.bool else 256
    return torch.randint(0, most, (count * info(dtype).size_bytes,), dtype=torch.uint8, generator=generator).view(dtype)


def check(got: torch.Tensor, truth: torch.Tensor, honest: torch.Tensor | None = None) -> OutputCheck:
    honest = rounded(truth, got.dtype) if honest is None else honest
    found = check_output("y", got, truth, honest, Tolerance())
    assert found.correct or not passes_fast_check(got, truth, Tolerance()), "the fast check passes only right outputs"
    return found


def test_the_table_says_what_torch_says() -> None:
    for dtype in _ALL:
        assert torch.empty(0, dtype=dtype).element_size() == info(dtype).size_bytes
        if info(dtype).family in ("float", "complex"):
            found = torch.finfo(dtype)
            assert (found.eps, found.tiny, found.max) == (info(dtype).eps, info(dtype).tiny, info(dtype).high)
        if info(dtype).family == "integer":
            assert (torch.iinfo(dtype).min, torch.iinfo(dtype).max) == (info(dtype).low, info(dtype).high)


@pytest.mark.parametrize("dtype", _ALL, ids=str)
def test_numbers_tell_every_bit_pattern_apart(dtype: torch.dtype) -> None:
    values = random_bytes(dtype)
    assert same_bits(carrier(of_numbers(numbers(values), dtype)), carrier(values))


def test_float4_is_rounded_to_the_nearest_and_to_an_even_code_between_two() -> None:
    values = torch.arange(-7.0, 7.0, 0.015625)
    table = torch.tensor(FLOAT4_MAGNITUDES)
    table = torch.cat([-table.flip(0), table])
    distance = (values[:, None] - table).abs()
    got = numbers(pack_float4(values)).reshape(-1)
    assert torch.equal((values - got).abs(), distance.amin(1))
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -5.0])
    assert numbers(pack_float4(ties)).reshape(-1).tolist() == [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, -4.0]
    byte = torch.tensor([0b1111_0010], dtype=torch.uint8).view(FLOAT4)
    assert numbers(byte).tolist() == [[1.0, -6.0]], "the low half comes first"


def test_the_truth_of_complex_numbers_is_complex128() -> None:
    assert wide(torch.complex64) is torch.complex128
    assert widened(torch.ones(2, dtype=torch.complex64)).dtype is torch.complex128
    assert widened(torch.ones(2, dtype=SCALE)).dtype is torch.float64
    assert widened(random_bytes(FLOAT4)).dtype is FLOAT4
    assert widened(random_bytes(torch.uint16)).dtype is torch.uint16


# --- comparison ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e4m3fnuz], ids=str)
def test_without_infinities_the_largest_number_stands_for_what_is_beyond_it(dtype: torch.dtype) -> None:
    truth = torch.ones(40, 50, dtype=torch.float64)
    truth[1, 2], truth[3, 4] = 1e6, -1e6
    most = info(dtype).high
    right = truth.clamp(-most, most).to(dtype)
    assert check(right, truth, right).correct
    right[1, 2] = float("nan")
    assert not check(right, truth, right).correct


@pytest.mark.parametrize("name", _ADDED)
def test_a_right_output_passes_and_zeros_and_poison_do_not(name: str) -> None:
    dtype = getattr(torch, name)
    generator = torch.Generator().manual_seed(2)
    values = torch.randint(1, 4, numbers(torch.zeros(40, 50, dtype=dtype)).shape, generator=generator)
    truth = widened(of_numbers(values, dtype))
    right = rounded(truth, dtype)
    assert check(right, truth).correct
    for wrong in (torch.zeros_like(right), random_bytes(dtype, 2000).view(40, 50)):
        found = check(wrong, truth)
        assert not found.correct
        assert found.dtype == name
        assert describe(found).startswith("y: ")


def test_one_wrong_part_of_a_complex_number_is_found_and_named() -> None:
    truth = torch.randn(30, 20, dtype=torch.complex128, generator=torch.Generator().manual_seed(3))
    got = truth.to(torch.complex64)
    got[7, 5] += 0.01j
    found = check(got, truth)
    assert found.mismatch is not None
    assert found.mismatch.wrong == 1
    assert found.mismatch.first[0].index == (7, 5, 1), "1 is the imaginary part"
    assert "ulps of complex64" in describe(found)
    transposed = check(truth[:20].T.contiguous().to(torch.complex64), truth[:20])
    assert transposed.mismatch is not None
    assert "looks transposed" in transposed.mismatch.hints


def test_the_error_of_a_part_is_measured_by_the_whole_number() -> None:
    """A product's real part can cancel: its rounding error is one of the whole."""
    truth = torch.ones(100, 100, dtype=torch.complex128)
    truth[3, 3] = 1e6j
    got = truth.to(torch.complex64)
    got[3, 3] += 1e6 * 1e-6
    assert check(got, truth).correct
    got[3, 4] += 1.0
    assert not check(got, truth).correct


@pytest.mark.parametrize("special", [float("nan"), float("inf")])
def test_a_part_beside_one_that_is_not_finite_is_measured_by_itself(special: float) -> None:
    truth = torch.full((100, 100), 1 + 1j, dtype=torch.complex128)
    truth.real[3, 4] = special
    got = truth.to(torch.complex64)
    assert check(got, truth).correct
    got.imag[3, 4] = 1.01
    assert check(got, truth).max_error.error == pytest.approx(0.01, rel=0.01)


def test_scales_are_compared_by_their_exponents_without_a_budget() -> None:
    truth = 2.0 ** torch.arange(-10, 10).double()
    got = truth.to(SCALE)
    assert check(got, truth).correct
    found = check((truth * torch.where(torch.arange(20) == 4, 0.5, 1.0)).to(SCALE), truth)
    assert found.mismatch is not None
    assert [(bad.index, bad.got, bad.expected, bad.error) for bad in found.mismatch.first] == [((4,), "-7", "-6", "1")]
    assert check(torch.full((3,), torch.nan).to(SCALE), torch.full((3,), torch.nan).double()).correct


def test_a_float4_may_be_rounded_the_other_way_and_not_be_two_steps_off() -> None:
    exact = torch.randn(64, 64, generator=torch.Generator().manual_seed(5)) * 2
    truth = pack_float4(exact.clamp(-6, 6))
    assert check(pack_float4((exact + 0.01).clamp(-6, 6)), truth).correct
    assert not check(pack_float4((exact + 3).clamp(-6, 6)), truth).correct
    halves = carrier(truth)
    assert not check((halves << 4 | halves >> 4).view(FLOAT4), truth).correct, "the halves are swapped"


@pytest.mark.parametrize("dtype", _ALL, ids=str)
def test_single_numbers_are_compared_and_outputs_without_elements_are_right(dtype: torch.dtype) -> None:
    empty = torch.empty(3, 0, dtype=dtype)
    assert check(empty, widened(empty)).correct
    ones = numbers(random_bytes(dtype, 1).view(()))
    truth = widened(of_numbers(torch.ones_like(ones), dtype))
    right = rounded(truth, dtype)
    assert check(right, truth).correct
    found = check(of_numbers(torch.zeros_like(ones), dtype), truth)
    assert found.mismatch is not None
    assert found.mismatch.shape == tuple(ones.shape)
    assert describe(found)


@pytest.mark.parametrize("dtype", _ALL, ids=str)
@pytest.mark.parametrize("kind", ["right", "one", "all", "special", "random"])
def test_a_truth_of_the_outputs_own_dtype_decides_as_the_same_truth_in_float64(dtype: torch.dtype, kind: str) -> None:
    generator = torch.Generator().manual_seed(6)
    shape = numbers(torch.zeros(30, 40, dtype=dtype)).shape
    truth = of_numbers(torch.randint(1, 4, shape, generator=generator), dtype)
    got = of_numbers(numbers(truth).clone(), dtype)
    if kind == "one":
        carrier(got)[3, 7] = carrier(of_numbers(torch.zeros_like(numbers(truth)), dtype))[0, 0]
    elif kind == "all":
        got = of_numbers(torch.zeros_like(numbers(truth)), dtype)
    elif kind == "special":
        carrier(truth)[5, 5:15] = carrier(random_bytes(dtype, 10))
        carrier(got)[5, 5:15] = carrier(truth)[5, 5:15]
    elif kind == "random":
        got = random_bytes(dtype, 1200).view(30, 40)
    assert check(got, truth, truth) == check(got, widened(truth), truth)
    pairs = {own: [(got, truth if own else widened(truth))] * 20 for own in (True, False)}
    assert all_pass_fast_check(pairs[True], Tolerance()) == all_pass_fast_check(pairs[False], Tolerance())
    assert passes_fast_check(got, truth, Tolerance()) == passes_fast_check(got, widened(truth), Tolerance())


TOLERANCE = Tolerance(rtol=0.125, atol=0.0)


def values(dtype: torch.dtype, *each: float) -> Tensor:
    """Elements whose first part is as given; the second part of complex and packed ones is 1."""
    first = torch.tensor(each, dtype=torch.float64)
    return of_numbers(torch.stack([first, torch.ones(len(each))], dim=-1) if parts(dtype) == 2 else first, dtype)


@pytest.mark.parametrize("dtype", _ALL)
def test_equal_values_are_close_and_doubled_ones_are_not(dtype: torch.dtype) -> None:
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


def test_a_close_result_may_exceed_the_budget() -> None:
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


def test_outputs_without_elements_are_close() -> None:
    assert is_close(torch.empty(0, dtype=torch.complex64), torch.empty(0, dtype=torch.complex128), TOLERANCE)
