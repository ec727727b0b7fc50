"""Checks one output by a fixed tolerance, as `torch.allclose` does, for problems that state one. Trusted."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.compare.budget import maximum_floor
from harness.compare.check import check_output, dtype_name, expected_numbers
from harness.compare.field import BLOCK_ELEMENTS, Field
from harness.compare.mismatch import Evidence, OutputType, explain, locate_worst
from harness.problem.elements import has_budget, numbers, widened
from harness.problem.spec import Tolerance
from harness.verdict import Mismatch, OutputCheck


def check_close(
    name: str,
    got: Tensor,
    truth: Tensor,
    honest: Tensor,
    tolerance: Tolerance,
    poison: Tensor | None = None,
    *,
    calls: int = 1,
) -> OutputCheck:
    """Decide whether |got - truth| <= atol + rtol * |truth| for every element; NaN is never close.

    Arguments as for `check_output`, which measures the error of a right answer.
    """
    wrong = _far(got, truth, tolerance)
    if not bool(wrong.any()):
        return check_output(name, got, truth, honest, tolerance, poison, calls=calls).accepted()
    mismatch = _explained(name, got, truth, tolerance, poison, calls, wrong)
    return OutputCheck(output=name, dtype=dtype_name(got), correct=False, mismatch=mismatch)


def _explained(
    name: str, got: Tensor, truth: Tensor, tolerance: Tolerance, poison: Tensor | None, calls: int, wrong: Tensor
) -> Mismatch:
    """`wrong`: [elements] bool. Complex and packed elements are shown part by part: those parts that differ."""
    values, expected = numbers(got), expected_numbers(truth, got.dtype)
    field = rms_error = None
    if has_budget(got.dtype):
        field = Field(expected, got.dtype, maximum_floor(got.dtype, tolerance), tolerance.scale, calls)
        rms_error = field.measure(values.reshape(-1)).rms
    if values.numel() > wrong.numel():
        apart = values.reshape(wrong.numel(), -1) != expected.reshape(wrong.numel(), -1)
        wrong = (wrong[:, None] & apart).reshape(-1)
    held = None if poison is None else numbers(poison)
    evidence = Evidence(OutputType(name, got.dtype), values, expected, held, field, rms_error)
    rule = f"{tolerance.atol:g} + {tolerance.rtol:g} × |expected|"
    return explain(evidence, locate_worst(evidence, wrong)).model_copy(update={"allowed": rule})


def is_close(got: Tensor, truth: Tensor, tolerance: Tolerance) -> bool:
    """Whether `check_close` accepts it."""
    return not bool(_far(got, truth, tolerance).any())


def _far(got: Tensor, truth: Tensor, tolerance: Tolerance) -> Tensor:
    """Which elements are too far away: [elements] bool."""
    assert tolerance.rtol is not None
    assert tolerance.atol is not None
    flat, expected = got.reshape(-1), truth.reshape(-1)
    wrong = torch.empty(flat.shape, dtype=torch.bool, device=got.device)
    for at in range(0, flat.numel(), BLOCK_ELEMENTS):
        one, other = (_exact(values[at : at + BLOCK_ELEMENTS]) for values in (flat, expected))
        near = torch.isclose(one, other, rtol=tolerance.rtol, atol=tolerance.atol)
        wrong[at : at + len(one)] = (~near).view(len(one), -1).any(dim=-1)
    return wrong


def _exact(tensor: Tensor) -> Tensor:
    """In float64 or complex128, whose distance is that of the plane; packed values along one more axis."""
    wide = widened(tensor)
    return wide if wide.dtype in (torch.float64, torch.complex128) else numbers(wide).to(torch.float64)
