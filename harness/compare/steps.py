"""Checks the tolerance `off_by`, which limits by how many steps of its dtype an element may differ from the truth.

A step is 1 for integers and for the exponents of scales, and the distance to the next value (1 ULP) for floats. Called
by `check.py` and the judge. Trusted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from harness.compare.field import BLOCK_ELEMENTS
from harness.problem.elements import bits, info, numbers, rounded
from harness.problem.tolerance import Tolerance

_LAST, _FIRST = torch.iinfo(torch.int64).max, torch.iinfo(torch.int64).min


def beyond_steps(got: Tensor, truth: Tensor, tolerance: Tolerance, calls: int = 1) -> Tensor | None:
    """A mask [elements] bool of the wrong elements of an output whose tolerance has `off_by`; None if it is right.

    If some elements are too far off, only these are wrong. Otherwise, if more than the `share` of a call's elements are
    off, all elements that are off are wrong. `calls` calls are stacked along the first axis.
    """
    assert tolerance.off_by is not None
    got_blocks, truth_blocks = (tensor.reshape(-1).split(BLOCK_ELEMENTS) for tensor in (got, truth))
    off, far = [], []
    for values, wanted in zip(got_blocks, truth_blocks, strict=True):
        right = rounded(wanted, got.dtype)
        place, target = _steps(values), _steps(right)
        near = (place >= _minus(target, tolerance.off_by)) & (place <= _plus(target, tolerance.off_by))
        special = _special(values) | _special(right)
        off.append(place != target)
        far.append(torch.where(special, place != target, ~near))
    if not off:
        return None
    beyond, different = torch.cat(far), torch.cat(off)
    if bool(beyond.any()):
        return beyond
    by_call = different.view(calls, -1)
    most = int(tolerance.share * by_call.shape[1] + 1e-6)  # 0.29 × 100 is a little less than 29
    return different if bool((by_call.sum(dim=1) > most).any()) else None


def _steps(values: Tensor) -> Tensor:
    """Number the values of a dtype in increasing order, as int64: 0 for both zeros, and the same for every NaN."""
    if not (info(values.dtype).rounds and values.is_floating_point()):
        return numbers(values).to(torch.int64)
    size = 8 * values.element_size()
    raw = bits(values).to(torch.int64)
    if size < 64:
        raw = raw & ((1 << size) - 1)
        raw = torch.where(raw >> (size - 1) == 1, (1 << (size - 1)) - raw, raw)
    else:
        raw = torch.where(raw < 0, _FIRST - raw, raw)
    return torch.where(values.double().isnan(), _FIRST, raw)


def _special(values: Tensor) -> Tensor:
    """A mask of infinities and NaN, including the NaN of scales. They must be equal, since no number is near them."""
    if info(values.dtype).family == "scale":
        return numbers(values) == 128
    return ~values.double().isfinite()


def _minus(values: Tensor, by: int) -> Tensor:
    """`values - by` without overflow."""
    return torch.where(values < _FIRST + by, _FIRST, values - by)


def _plus(values: Tensor, by: int) -> Tensor:
    """`values + by` without overflow."""
    return torch.where(values > _LAST - by, _LAST, values + by)
