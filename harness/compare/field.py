"""Compares values with the truth of one output, in blocks of limited size: normalised errors and their scales.

Called by `check.py` and `mismatch.py`. Trusted. Works on the device of the tensors. A block has at most
`BLOCK_ELEMENTS`, so that the float64 temporaries of a comparison take less than 512 MiB whatever the output's size.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.problem.elements import FLOAT4, info
from harness.problem.tolerance import Scale

BLOCK_ELEMENTS = 1 << 22
# On a CPU, temporaries should fit into the cache, and should not be mapped again for every operation.
CPU_BLOCK_ELEMENTS = 1 << 17

# The scale of an element is at least the RMS of its row, since a sum that happens to cancel has a large relative error.
# In a row of one or two elements (as in the output of a matrix-vector product) the RMS would cancel, too, so short rows
# are joined along the leading axes until chance changes the RMS by no more than a quarter.
ROW_ELEMENTS = 32

# Formats whose subnormal results the hardware's fast modes may flush to zero. float16's are never flushed on the
# supported devices, and its smallest normal number (6e-5) is not negligible.
FLUSHED = (torch.float32, torch.bfloat16, torch.complex64)
NO_INFINITY = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, FLOAT4)


@dataclass(frozen=True)
class Block:
    """A contiguous range of the flattened output: whole rows, or a part of one row."""

    start: int
    stop: int
    row: int
    width: int

    def of(self, flat: Tensor) -> Tensor:
        """The block's elements as [rows, width]."""
        return flat[self.start : self.stop].view(-1, self.width)


@dataclass(frozen=True)
class Deviation:
    """The deviation of the values of one block from the expected ones, as [rows, width].

    `error` is normalised, and 0 unless both values are finite. `misplaced` marks NaN or infinity on only one side.
    `squares` [rows] is the sum of the squared absolute differences.
    """

    error: Tensor
    misplaced: Tensor
    squares: Tensor


@dataclass(frozen=True)
class Metrics:
    """The errors of an output: the largest normalised error, and the relative RMS error of the worst call.

    If the norm covered all calls, one call in twenty could be wrong by four times what a single call may be.
    """

    maximum: float
    rms: float
    misplaced: int


class Field:
    """The truth of one floating-point output of any shape and of `dtype`.

    The truth is float64, or of the output's own dtype if the reference is inexact. It is widened block by block, since
    an output may take a tenth of the device's memory. Real and imaginary parts of complex numbers are next to each
    other along the last axis; the error of a part is relative to the magnitude of the number.

    `calls`: how many calls are stacked along the first axis. No row extends from one call into the next.
    """

    def __init__(self, truth: Tensor, dtype: torch.dtype, floor: float, scale: Scale = "row", calls: int = 1) -> None:
        self.dtype = dtype
        self._calls = calls
        self._flat = truth.reshape(-1)
        self._width = row_width(truth.shape, scale, calls)
        self._largest = info(dtype).high
        # Near the overflow threshold a rounding error may give the largest number or infinity, so both are right.
        self._surely_finite = self._largest * (1 - min(floor, 0.5))
        self._surely_infinite = self._largest * (1 + min(floor, 0.5))
        # A plain truth is finite everywhere and far from overflow (NaN fails the comparison), which is the usual case.
        peaks = torch.stack([self._truth_of(block).abs().amax() for block in self.blocks()])
        self._plain = bool((peaks < self._surely_finite).all())
        self._unit = self._choose_unit()
        self._smallest = max(info(dtype).tiny / self._unit, sys.float_info.min)
        self._row_rms, self._norms = self._measure()

    def blocks(self) -> Iterator[Block]:
        """All blocks of the output, in index order."""
        most = CPU_BLOCK_ELEMENTS if self._flat.device.type == "cpu" else BLOCK_ELEMENTS
        return blocks(self._flat.numel(), self._width, most)

    def _truth_of(self, block: Block) -> Tensor:
        """The truth in one block, float64 [rows, width]."""
        return block.of(self._flat).double()

    def expected(self, block: Block) -> Tensor:
        """The values that the output should have, float64 [rows, width]. Do not write to them."""
        return self._truth_of(block) if self._plain else self.representable(self._truth_of(block))

    def representable(self, truth: Tensor) -> Tensor:
        """A copy of truth values; those far beyond the range of the output's dtype become infinite or saturate."""
        if self.dtype in NO_INFINITY:
            return truth.clamp(-self._largest, self._largest)
        return torch.where(truth.abs() > self._surely_infinite, truth.sign() * math.inf, truth)

    def deviation(self, values: Tensor, block: Block) -> Deviation:
        """Compare `values`, the flattened output in its own dtype, with the truth in one block."""
        if self._plain and self._unit == 1.0:
            deviation = self._plain_deviation(values, block)
            if bool(deviation.squares.sum().isfinite()):
                return deviation
        return self._careful_deviation(values, block)

    def measure(self, values: Tensor) -> Metrics:
        """Both metrics of the flattened output `values`, and the number of NaN and infinities in the wrong place."""
        if self._plain and self._unit == 1.0:
            metrics = self._metrics(self._plain_deviation, values)
            if math.isfinite(metrics.rms):
                return metrics
        return self._metrics(self._careful_deviation, values)

    def _metrics(self, deviation_of: Callable[[Tensor, Block], Deviation], values: Tensor) -> Metrics:
        """The metrics by one of the two methods. It waits for the device only once, since others may be using it."""
        maxima, misplaced = [], []
        squares = torch.zeros_like(self._row_rms)
        for block in self.blocks():
            deviation = deviation_of(values, block)
            maxima.append(deviation.error.amax())
            misplaced.append(deviation.misplaced.sum())
            squares[block.row : block.row + len(deviation.squares)] += deviation.squares
        rms = (squares.view(self._calls, -1).sum(-1).sqrt() / self._norms).amax()
        largest, wrong = torch.stack(maxima).amax(), torch.stack(misplaced).sum()
        found = torch.stack([largest.double(), rms, wrong.double()]).tolist()
        return Metrics(found[0], found[1], int(found[2]))

    def _plain_deviation(self, values: Tensor, block: Block) -> Deviation:
        """The deviation from a plain truth. If the squares are not finite, it is not valid for these `values`."""
        value = block.of(values)
        if value.element_size() == 1:
            value = value.half()  # exact; torch has no arithmetic for eight-bit floats
        difference = (value - self._truth_of(block)).abs_()
        squares = difference.square().sum(-1)
        nowhere = torch.zeros(difference.shape, dtype=torch.bool, device=difference.device)
        return Deviation(self._normalised(difference, value, self._truth_of(block), block), nowhere, squares)

    def _normalised(self, difference: Tensor, value: Tensor, truth: Tensor, block: Block) -> Tensor:
        """Divide absolute differences by their scales, in place."""
        magnitude = self._magnitude(truth)
        if self.dtype in FLUSHED:
            difference.masked_fill_((value == 0) & (magnitude < self._smallest), 0.0)
        rows = self._row_rms[block.row : block.row + difference.shape[0], None]
        return difference.div_(torch.maximum(magnitude, rows).clamp_min_(self._smallest))

    def _careful_deviation(self, values: Tensor, block: Block) -> Deviation:
        """The deviation if there are NaN, infinities or values near the limits of float64."""
        truth = self.expected(block)
        value = block.of(values).double()
        both = value.isfinite() & truth.isfinite()
        overflowed = value.isinf() & (value.sign() == truth.sign()) & (truth.abs() >= self._surely_finite)
        misplaced = ~(both | overflowed | (value.isnan() & truth.isnan()))
        if self._unit != 1.0:
            truth, value = truth / self._unit, value / self._unit
        difference = (value - truth).abs_().masked_fill_(~both, 0.0)
        squares = difference.square().sum(-1)
        # One part of a complex number may be NaN or infinite, and then it is no scale for the other.
        finite = torch.where(truth.isfinite(), truth, 0.0)
        error = self._normalised(difference, value, finite, block).masked_fill_(~both, 0.0)
        return Deviation(error, misplaced, squares)

    def _magnitude(self, truth: Tensor) -> Tensor:
        if not self.dtype.is_complex:
            return truth.abs()
        pairs = truth.view(-1, 2)
        return torch.hypot(pairs[:, :1], pairs[:, 1:]).expand(-1, 2).reshape(truth.shape)

    def _choose_unit(self) -> float:
        # Squares of float64 numbers overflow beyond 1e154; every other format is far from that.
        if self.dtype not in (torch.float64, torch.complex128):
            return 1.0
        peaks = [self._finite(block).abs_().amax() for block in self.blocks()]
        peak = float(torch.stack(peaks).amax())
        return 1.0 if peak == 0 or 1e-140 < peak < 1e140 else peak

    def _finite(self, block: Block) -> Tensor:
        truth = self.expected(block)
        return torch.where(truth.isfinite(), truth, 0.0)

    def _measure(self) -> tuple[Tensor, Tensor]:
        """The RMS of every row's finite elements, float64 [rows], and the norm of each call.

        The norm is at least the smallest normal number.
        """
        rows = self._flat.numel() // self._width
        squares = torch.zeros(rows, dtype=torch.float64, device=self._flat.device)
        counts = torch.zeros_like(squares)
        for block in self.blocks():
            span = slice(block.row, block.row + block.of(self._flat).shape[0])
            if self._plain and self._unit == 1.0:
                squares[span] += self._truth_of(block).square().sum(-1)
                counts[span] += block.width
                continue
            squares[span] += self._finite(block).div_(self._unit).square_().sum(-1)
            counts[span] += self.expected(block).isfinite().sum(-1)
        norms = squares.view(self._calls, -1).sum(-1).sqrt_().clamp_min_(self._smallest)
        return squares.div_(counts.clamp_min_(1.0)).sqrt_(), norms


def blocks(total: int, width: int, most: int) -> Iterator[Block]:
    """Divide an output of rows of one width into blocks of at most `most` elements, in index order."""
    step = most // width * width
    if step:
        for start in range(0, total, step):
            yield Block(start, min(start + step, total), start // width, width)
        return
    for row_start in range(0, total, width):
        for start in range(row_start, row_start + width, most):
            stop = min(start + most, row_start + width)
            yield Block(start, stop, row_start // width, stop - start)


def row_width(shape: torch.Size, scale: Scale = "row", calls: int = 1) -> int:
    """How many consecutive elements share a scale; at most the elements of one of the stacked calls."""
    one_call = (shape[0] // calls, *shape[1:]) if shape else ()
    if scale == "tensor":
        return math.prod(one_call)
    width = 1
    for size in reversed(one_call):
        if width >= ROW_ELEMENTS:
            break
        width *= size
    return width
