"""The layouts that a returned tensor may have: dense, with its dimensions in another order. Judge and runner use it.

Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

OtherLayout = Literal["column_major", "channels_last"]
ROW_MAJOR = "row_major"
MAX_RESULTS = 64  # of a call that may have several layouts, which one frame names
OTHER_LAYOUTS: tuple[OtherLayout, ...] = get_args(OtherLayout)
MIN_DIMENSIONS: dict[OtherLayout, int] = {"column_major": 2, "channels_last": 3}


def strides_of(layout: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor in a layout, in elements.

    column_major: the last dimension but one is contiguous, so each matrix is transposed. channels_last: dimension 1 is.
    """
    outer_to_inner = list(range(len(shape)))
    if layout != ROW_MAJOR:
        outer_to_inner.append(outer_to_inner.pop(-2 if layout == "column_major" else 1))
    strides, step = [0] * len(shape), 1
    for dimension in reversed(outer_to_inner):
        strides[dimension] = step
        step *= shape[dimension]
    return tuple(strides)


def layout_of(shape: Sequence[int], strides: Sequence[int], others: Sequence[str]) -> str | None:
    """The first layout, of row-major and `others`, that a tensor has; None if it has none of them."""
    for layout in (ROW_MAJOR, *others):
        wanted = zip(shape, strides, strides_of(layout, shape), strict=True)
        if 0 in shape or all(size == 1 or stride == own for size, stride, own in wanted):
            return layout
    return None
