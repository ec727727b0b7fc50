"""Turns a wrong output into a record: how many elements are wrong, the first, the worst, and what it looks like.

`check.py` calls it only for a wrong output. Trusted. Its largest temporary is a mask of one byte per element; only the
few values that are shown leave the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.compare.field import BLOCK_ELEMENTS, Field
from harness.compare.hints import Clues, hints
from harness.verdict import BadElement, Mismatch

SHOWN_ELEMENTS = 8


@dataclass(frozen=True)
class OutputType:
    """An output by its name and its own dtype. Its values are compared as `elements.numbers` gives them."""

    name: str
    dtype: torch.dtype

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Evidence:
    """A wrong output with what it was compared with; integers have no `field` and no RMS error.

    `only_rms`: every element is within the maximum; only the overall relative RMS error is too large.
    """

    output: OutputType
    got: Tensor
    truth: Tensor
    poison: Tensor | None
    field: Field | None = None
    rms_error: float | None = None
    only_rms: bool = False

    def expected(self, truth: Tensor) -> Tensor:
        """Some values of the truth, as the output should hold them."""
        return truth if self.field is None else self.field.representable(truth.double())


@dataclass(frozen=True)
class Located:
    """Where an output is wrong: a bool mask of the flattened output, and the flat index of its worst element."""

    wrong: Tensor
    worst: int


def locate_floats(evidence: Evidence, field: Field, threshold: float) -> Located:
    """Mark the elements whose normalised error exceeds `threshold`, or the worst one if none does."""
    flat = evidence.got.reshape(-1)
    wrong = torch.empty(flat.shape, dtype=torch.bool, device=flat.device)
    starts, peaks, places = [], [], []
    for block in field.blocks():
        deviation = field.deviation(flat, block)
        block.of(wrong).copy_((deviation.error > threshold) | deviation.misplaced)
        peak, place = deviation.error.masked_fill_(deviation.misplaced, math.inf).view(-1).max(0)
        starts.append(block.start)
        peaks.append(peak)
        places.append(place)
    worst = _largest(starts, peaks, places)
    # With a systematic loss of precision no single element may stand out.
    wrong[worst] = True
    return Located(wrong, worst)


def locate_integers(evidence: Evidence) -> Located:
    """Mark the elements that differ."""
    return locate_worst(evidence, evidence.got.reshape(-1) != evidence.truth.reshape(-1))


def locate_worst(evidence: Evidence, wrong: Tensor) -> Located:
    """Of the elements that are marked (`wrong`: [elements] bool), the one furthest from the truth."""
    got, truth = evidence.got.reshape(-1), evidence.truth.reshape(-1)
    starts, peaks, places = [], [], []
    for start in range(0, got.numel(), BLOCK_ELEMENTS):
        span = slice(start, start + BLOCK_ELEMENTS)
        # One is added since neighbouring 64-bit integers may be equal as float64.
        distance = (got[span].double() - truth[span].double()).abs_().add_(1.0)
        distance.masked_fill_(distance.isnan(), math.inf)
        peak, place = distance.masked_fill_(~wrong[span], 0.0).max(0)
        starts.append(start)
        peaks.append(peak)
        places.append(place)
    return Located(wrong, _largest(starts, peaks, places))


def explain(evidence: Evidence, located: Located) -> Mismatch:
    """The record of a wrong output: counts, the first and the worst elements, and hints.

    What nothing was written to holds random bytes, of which none is shown.
    """
    clues = _examine(evidence, located)
    written = clues.whole != "unwritten"
    return Mismatch(
        output=evidence.output.name,
        shape=tuple(evidence.got.shape),
        dtype=evidence.output.dtype_name,
        wrong=clues.wrong,
        total=clues.total,
        nan_got=clues.nan_got,
        nan_expected=clues.nan_expected,
        inf_got=clues.inf_got,
        inf_expected=clues.inf_expected,
        whole=clues.whole,
        worst_index=_index(located.worst, evidence.got.shape) if written else None,
        first=_first(evidence, located.wrong) if written else (),
        hints=hints(evidence.output.dtype, evidence.got, evidence.truth, located.wrong, clues),
    )


def _examine(evidence: Evidence, located: Located) -> Clues:
    """Count over the whole output, in blocks."""
    got, truth = evidence.got.reshape(-1), evidence.truth.reshape(-1)
    held = None if evidence.poison is None else _bits(evidence.poison)
    tallies, masks = [], dict[str, Tensor]()
    for start in range(0, got.numel(), BLOCK_ELEMENTS):
        span = slice(start, start + BLOCK_ELEMENTS)
        value, expected, wrong = got[span].double(), evidence.expected(truth[span]).double(), located.wrong[span]
        untouched = _bits(got[span]) == held[span] if held is not None else torch.zeros_like(wrong)
        unwritten = wrong & untouched
        masks = {
            "wrong": wrong,
            "untouched": untouched,
            "unwritten": unwritten,
            "nan_for_finite": value.isnan() & expected.isfinite() & ~unwritten,
            "nonzero": value != 0,
            "nan_got": value.isnan(),
            "nan_expected": expected.isnan(),
            "inf_got": value.isinf(),
            "inf_expected": expected.isinf(),
        }
        tallies.append(torch.stack([mask.sum() for mask in masks.values()]))
    counts = dict(zip(masks, torch.stack(tallies).sum(0).tolist(), strict=True))
    return Clues(total=got.numel(), rms_error=evidence.rms_error, only_rms=evidence.only_rms, **counts)


def _first(evidence: Evidence, wrong: Tensor) -> tuple[BadElement, ...]:
    """The first wrong elements in index order."""
    places: list[int] = []
    for start in range(0, wrong.numel(), BLOCK_ELEMENTS):
        more = wrong[start : start + BLOCK_ELEMENTS].nonzero().view(-1)[: SHOWN_ELEMENTS - len(places)]
        places += (more + start).tolist()
        if len(places) == SHOWN_ELEMENTS:
            break
    chosen = torch.tensor(places, device=wrong.device)
    got = evidence.got.reshape(-1)[chosen]
    values = (got.double() if got.is_floating_point() else got).tolist()
    truths = evidence.expected(evidence.truth.reshape(-1)[chosen]).tolist()
    shape = evidence.got.shape
    return tuple(
        BadElement(index=_index(place, shape), got=_text(value), expected=_text(truth), error=_distance(value, truth))
        for place, value, truth in zip(places, values, truths, strict=True)
    )


def _largest(starts: list[int], peaks: list[Tensor], places: list[Tensor]) -> int:
    block = int(torch.stack(peaks).argmax())
    return starts[block] + int(places[block])


def _bits(tensor: Tensor) -> Tensor:
    """The flattened tensor's bit patterns: poison may be a NaN, which compares unequal to itself."""
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.reshape(-1).view(integer)


def _index(place: int, shape: torch.Size) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        place, position = divmod(place, size)
        index.insert(0, position)
    return tuple(index)


def _text(value: float | int | bool) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _distance(value: float | int, truth: float | int) -> str:
    if isinstance(value, float) or isinstance(truth, float):
        return f"{abs(value - truth):.3g}"
    return str(abs(int(value) - int(truth)))
