"""Finds short hints on what is wrong with an output: a tile, a transposition, a factor, a lower precision.

Called by `mismatch.py`. Trusted. A hint is a guess for the participant and decides nothing, so only a sample of the
elements is searched for patterns of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from harness.compare.field import BLOCK_ELEMENTS
from harness.problem.elements import info, parts

SAMPLE_ELEMENTS = 1 << 16
_INT32 = 1 << 31
TILES = (128, 64, 32, 16)

# A pattern explains an output if at most this share of the error remains unexplained.
EXPLAINED = 0.05

# An evenly spread RMS error below this comes from rounding, not from wrong logic.
IMPRECISE = 1e-2

# Formats with their eps, and the range of the relative RMS error that rounding inputs or outputs to them causes.
# float16 and TF32 have the same 10 bits. Over vector_add, gelu, softmax and matmul the last three had 2.1e-4 to 5e-4,
# 1.7e-3 to 4e-3, and 2.7e-2 to 6e-2.
PRECISIONS = (
    ("float32", 2**-23, 1e-8, 1e-6),
    ("TF32 or float16", 2**-10, 8e-5, 8e-4),
    ("bfloat16", 2**-7, 1e-3, 7e-3),
    ("float8", 2**-3, 1.5e-2, 1e-1),
)


@dataclass(frozen=True)
class Clues:
    """Counts over a wrong output, its RMS error (absent for integers), and whether only that error is too large.

    `untouched` elements still have their poison; those of them that are wrong are `unwritten`.
    """

    total: int
    wrong: int
    untouched: int
    unwritten: int
    nan_for_finite: int
    nonzero: int
    nan_got: int
    nan_expected: int
    inf_got: int
    inf_expected: int
    rms_error: float | None
    only_rms: bool

    @property
    def whole(self) -> Literal["unwritten", "zeros"] | None:
        """Whether the whole output is unwritten or zero, which makes other hints pointless; None otherwise."""
        if self.untouched == self.total:
            return "unwritten"
        return "zeros" if self.nonzero == 0 else None


def hints(dtype: torch.dtype, got: Tensor, truth: Tensor, wrong: Tensor, clues: Clues) -> tuple[str, ...]:
    """All hints that apply to the numbers of an output of `dtype`; `wrong` is the mask of the flattened output."""
    sentences: list[str] = []
    total = clues.total
    if clues.whole is not None:
        return ("output never written" if clues.whole == "unwritten" else "output is all zeros",)
    # Every second bool equals its poison by chance.
    if got.dtype != torch.bool and (clues.unwritten == clues.wrong or clues.unwritten >= clues.wrong / 10):
        sentences.append(f"output never written in {clues.unwritten:,} of {total:,} elements")
    if clues.nan_for_finite:
        sentences.append(
            f"NaN where the truth is finite, in {clues.nan_for_finite:,} element" + "s" * (clues.nan_for_finite > 1)
        )
    sample = _Sample(got, truth, parts(dtype))
    if clues.unwritten < clues.wrong and sample.usable:
        sentences += sample.transposed()
        sentences += sample.factor() or sample.offset() or _precision(dtype, sample, clues)
    if clues.wrong < total and total > _INT32 and _first_and_count(wrong)[0] >= _INT32 * parts(dtype):
        sentences.append("right up to element 2³¹, from which on a 32-bit offset overflows: compute it in 64 bits")
    if not clues.only_rms and clues.wrong < total:
        elements = wrong.view(got.shape)
        sentences += _places(elements.any(-1) if parts(dtype) > 1 else elements)
    return tuple(sentences)


class _Sample:
    """Finite pairs of actual and expected values at scattered places, in float64."""

    def __init__(self, got: Tensor, truth: Tensor, parts: int = 1) -> None:
        self._parts = parts
        self._got, self._truth = got.reshape(-1), truth.reshape(-1)
        total = got.numel()
        steps = torch.arange(min(total, SAMPLE_ELEMENTS), device=got.device)
        # Knuth's multiplicative hash scatters the places; a fixed stride would align with the columns.
        places = steps if total <= SAMPLE_ELEMENTS else steps * 2654435761 % total
        value, expected = self._got[places].double(), self._truth[places].double()
        both = value.isfinite() & expected.isfinite()
        self._shape = got.shape[:-1] if parts > 1 else got.shape
        self._places, self._value, self._expected = places[both], value[both], expected[both]
        self._error = self._value - self._expected
        self._error_norm = float(self._error.norm())
        self.usable = int(both.sum()) >= 4 and self._error_norm > 0

    def transposed(self) -> list[str]:
        """A hint if the values are those of the transposed matrix, in either direction."""
        if len(self._shape) < 2 or 1 in self._shape[-2:]:
            return []
        rows, columns = self._shape[-2:]
        element, part = self._places // self._parts, self._places % self._parts
        batch = element // (rows * columns) * (rows * columns)
        place = element % (rows * columns)
        for height, width in ((rows, columns), (columns, rows)):
            source = (batch + place % height * width + place // height) * self._parts + part
            rest = (self._value - self._truth[source].double()).nan_to_num(0.0, 0.0, 0.0)
            if float(rest.norm()) <= EXPLAINED * self._error_norm:
                return ["looks transposed"]
        return []

    def factor(self) -> list[str]:
        """A hint if the output is the truth times one constant."""
        square = float(self._expected.square().sum())
        constant = float((self._value * self._expected).sum()) / square if square else 0.0
        rest = float((self._value - constant * self._expected).norm())
        varied = bool((self._expected != self._expected[0]).any())
        # A constant closer to 1 is a biased rounding error, which another hint describes.
        plain = constant != 0 and abs(constant - 1) >= 1e-3
        if not (plain and varied and rest <= EXPLAINED * self._error_norm):
            return []
        return [f"constant factor {constant:#.4g}: got ≈ {constant:#.4g} × expected"]

    def offset(self) -> list[str]:
        """A hint if the output is the truth plus one constant."""
        constant = float(self._error.mean())
        varied = bool((self._expected != self._expected[0]).any())
        if not varied or float((self._error - constant).norm()) > EXPLAINED * self._error_norm:
            return []
        return [f"constant offset {constant:#.4g}: got ≈ expected {'+' if constant > 0 else '-'} {abs(constant):#.4g}"]

    def spread_evenly(self) -> bool:
        """Whether the error is everywhere, as with rounding, and not in one place."""
        typical = self._error_norm / math.sqrt(len(self._error))
        return float(self._error.abs().median()) > 0.02 * typical


def _precision(dtype: torch.dtype, sample: _Sample, clues: Clues) -> list[str]:
    if clues.rms_error is None or clues.nan_for_finite or not sample.spread_evenly():
        return []
    error = clues.rms_error
    for name, eps, low, high in PRECISIONS:
        if eps > info(dtype).eps and low <= error <= high:
            return [
                f"looks like lower precision ({name}): a relative RMS error of {error:.1e} in every part of the output"
            ]
    if clues.only_rms or error <= IMPRECISE:
        return [f"systematic loss of precision: a relative RMS error of {error:.1e} in every part of the output"]
    return []


def _places(wrong: Tensor) -> Iterator[str]:
    """Hints about where the wrong elements are along each axis."""
    for axis, size in enumerate(wrong.shape):
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        touched = wrong.any(dim=others) if others else wrong
        first, count = _first_and_count(touched)
        if first == 0:
            continue
        name = _axis_name(axis, wrong.ndim)
        if bool(touched[-1]) and first >= size / 2 and count >= 0.9 * (size - first):
            yield f"only the last tile is wrong: {name}s {first} to {size - 1} (axis {axis})"
        tile = next((tile for tile in TILES if first % tile == 0), None)
        if tile is not None:
            yield f"wrong elements begin at {name} {first} = {first // tile} × {tile}"


def _first_and_count(mask: Tensor) -> tuple[int, int]:
    # In blocks, since on CUDA the reduction of a mask takes eight times its size in memory.
    parts = mask.split(BLOCK_ELEMENTS)
    counts = torch.stack([part.sum() for part in parts]).tolist()
    block = next(at for at, count in enumerate(counts) if count)
    return block * BLOCK_ELEMENTS + int(parts[block].byte().argmax()), sum(counts)


def _axis_name(axis: int, axes: int) -> str:
    if axes == 1:
        return "element"
    return {axes - 1: "column", axes - 2: "row"}.get(axis, f"axis-{axis} slice")
