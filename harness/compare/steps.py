"""How many steps of its dtype an element is off: whole numbers and exponents step by 1, floats to the next one.

`check.py` and the judge call it. Trusted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from harness.compare.field import BLOCK_ELEMENTS
from harness.problem.elements import bits, info, numbers, rounded
from harness.problem.tolerance import Tolerance

_LAST, _FIRST = torch.iinfo(torch.int64).max, torch.iinfo(torch.int64).min


def beyond_steps(got: Tensor, truth: Tensor, tolerance: Tolerance, calls: int = 1) -> Tensor | None:
    """The wrong elements, [elements] bool, of an output whose tolerance has `off_by`; None if it is right.

    Where too many are off, but none too far, those that are off are wrong. `calls` are stacked along the first axis.
    """
    assert tolerance.off_by is not None
    own, expected = (tensor.reshape(-1).split(BLOCK_ELEMENTS) for tensor in (got, truth))
    off, far = [], []
    for values, wanted in zip(own, expected, strict=True):
        right = rounded(wanted, got.dtype)
        one, other = _steps(values), _steps(right)
        near = (one >= _less(other, tolerance.off_by)) & (one <= _more(other, tolerance.off_by))
        special = _special(values) | _special(right)
        off.append(one != other)
        far.append(torch.where(special, one != other, ~near))
    if not off:
        return None
    beyond, different = torch.cat(far), torch.cat(off)
    if bool(beyond.any()):
        return beyond
    each = different.view(calls, -1)
    return different if bool((each.sum(dim=1) > int(tolerance.share * each.shape[1])).any()) else None


def _steps(values: Tensor) -> Tensor:
    """Each element's place among the values of its dtype: int64, in order, both zeros at 0, all NaN at one place."""
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
    """Infinities, NaN, and the NaN of scales: none is near a number."""
    if info(values.dtype).family == "scale":
        return numbers(values) == 128
    return ~values.double().isfinite()


def _less(values: Tensor, by: int) -> Tensor:
    return torch.where(values < _FIRST + by, _FIRST, values - by)


def _more(values: Tensor, by: int) -> Tensor:
    return torch.where(values > _LAST - by, _LAST, values + by)
