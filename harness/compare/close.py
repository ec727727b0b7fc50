"""Checks one output by a fixed tolerance, as `torch.allclose` does, for problems that state one. Trusted."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.compare.check import check_output, dtype_name
from harness.compare.field import BLOCK_ELEMENTS
from harness.problem.elements import numbers, widened
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

    Arguments as for `check_output`, which explains what is wrong where it finds a reason, and measures the error.
    """
    wrong = _far(got, truth, tolerance)
    explained = check_output(name, got, truth, honest, tolerance, poison, calls=calls)
    if not wrong:
        return explained.accepted()
    if not explained.correct:
        return explained
    limit = f"further than {tolerance.atol:g} + {tolerance.rtol:g} × |expected| from what is expected"
    mismatch = Mismatch(
        output=name, shape=tuple(got.shape), dtype=dtype_name(got), wrong=wrong, total=got.numel(), hints=(limit,)
    )
    return OutputCheck(output=name, dtype=dtype_name(got), correct=False, mismatch=mismatch)


def is_close(got: Tensor, truth: Tensor, tolerance: Tolerance) -> bool:
    """Whether `check_close` accepts it."""
    return not _far(got, truth, tolerance)


def _far(got: Tensor, truth: Tensor, tolerance: Tolerance) -> int:
    """How many elements are too far away."""
    assert tolerance.rtol is not None
    assert tolerance.atol is not None
    flat, expected = got.reshape(-1), truth.reshape(-1)
    wrong = torch.zeros((), dtype=torch.int64, device=got.device)
    for at in range(0, flat.numel(), BLOCK_ELEMENTS):
        one, other = (_exact(each[at : at + BLOCK_ELEMENTS]) for each in (flat, expected))
        near = torch.isclose(one, other, rtol=tolerance.rtol, atol=tolerance.atol)
        wrong += (~near).view(len(one), -1).any(dim=-1).sum()
    return int(wrong)


def _exact(tensor: Tensor) -> Tensor:
    """In float64 or complex128, whose distance is that of the plane; packed values along one more axis."""
    wide = widened(tensor)
    return wide if wide.dtype in (torch.float64, torch.complex128) else numbers(wide).to(torch.float64)
