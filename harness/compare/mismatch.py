"""Explains a wrong output: how many elements are wrong, the first and the worst of them, and hints.

Called by `check.py`, only for a wrong output, and by the command line to show a check in one line. Trusted. The largest
temporary is a mask of one byte per element. Only the few values that are shown leave the device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.compare.field import BLOCK_ELEMENTS, Field
from harness.compare.hints import Clues, hints
from harness.problem.dtypes import DTYPES
from harness.problem.elements import bits, dtype_name
from harness.verdict import BadElement, Budget, Mismatch, OutputCheck

SHOWN_ELEMENTS = 8


@dataclass(frozen=True)
class Evidence:
    """A wrong output, and what it was compared with; the tensors are results of `elements.numbers`.

    Integers have no `field` and no RMS error. `only_rms`: only the overall relative RMS error is too large; no single
    element is.
    """

    output: str
    dtype: torch.dtype
    got: Tensor
    truth: Tensor
    poison: Tensor | None
    field: Field | None = None
    rms_error: float | None = None
    only_rms: bool = False

    def expected(self, truth: Tensor) -> Tensor:
        """Values of the truth, as the output can represent them."""
        return truth if self.field is None else self.field.representable(truth.double())


def locate_floats(evidence: Evidence, field: Field, threshold: float) -> tuple[Tensor, int]:
    """A mask [elements] bool of the elements whose normalised error exceeds `threshold`, and the index of the worst.

    The worst element is always marked: with a systematic loss of precision none may exceed the threshold.
    """
    flat = evidence.got.reshape(-1)
    wrong = torch.empty(flat.shape, dtype=torch.bool, device=flat.device)
    starts, peaks = [], []
    for block in field.blocks():
        deviation = field.deviation(flat, block)
        block.of(wrong).copy_((deviation.error > threshold) | deviation.misplaced)
        starts.append(block.start)
        peaks.append(deviation.error.masked_fill_(deviation.misplaced, math.inf).view(-1).max(0))
    worst = _largest(starts, peaks)
    wrong[worst] = True
    return wrong, worst


def worst_of(evidence: Evidence, wrong: Tensor) -> int:
    """The index of the element furthest from the truth, among those that `wrong` [elements] bool marks."""
    got, truth = evidence.got.reshape(-1), evidence.truth.reshape(-1)
    starts, peaks = range(0, got.numel(), BLOCK_ELEMENTS), []
    for start in starts:
        span = slice(start, start + BLOCK_ELEMENTS)
        # One is added because neighbouring 64-bit integers may be equal as float64.
        distance = (got[span].double() - truth[span].double()).abs_().add_(1.0)
        distance.masked_fill_(distance.isnan(), math.inf)
        peaks.append(distance.masked_fill_(~wrong[span], 0.0).max(0))
    return _largest(starts, peaks)


def explain(evidence: Evidence, wrong: Tensor, worst: int) -> Mismatch:
    """Describe a wrong output: counts, the first and the worst wrong elements, and hints.

    `wrong` marks the wrong elements, [elements] bool; `worst` is the index of one of them. An output that was never
    written contains random bytes, which are not shown.
    """
    clues = _examine(evidence, wrong)
    written = clues.whole != "unwritten"
    return Mismatch(
        output=evidence.output,
        shape=tuple(evidence.got.shape),
        dtype=dtype_name(evidence.dtype),
        wrong=clues.wrong,
        total=clues.total,
        nan_got=clues.nan_got,
        nan_expected=clues.nan_expected,
        inf_got=clues.inf_got,
        inf_expected=clues.inf_expected,
        whole=clues.whole,
        worst_index=_index(worst, evidence.got.shape) if written else None,
        first=_first(evidence, wrong) if written else (),
        hints=hints(evidence.dtype, evidence.got, evidence.truth, wrong, clues),
    )


def _examine(evidence: Evidence, marked: Tensor) -> Clues:
    """Count over the whole output, in blocks."""
    got, truth = evidence.got.reshape(-1), evidence.truth.reshape(-1)
    # Bits are compared, since poison may be NaN, which is not equal to itself.
    held = None if evidence.poison is None else bits(evidence.poison.reshape(-1))
    tallies, masks = [], dict[str, Tensor]()
    for start in range(0, got.numel(), BLOCK_ELEMENTS):
        span = slice(start, start + BLOCK_ELEMENTS)
        value, expected, wrong = got[span].double(), evidence.expected(truth[span]).double(), marked[span]
        untouched = bits(got[span]) == held[span] if held is not None else torch.zeros_like(wrong)
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


def _largest(starts: Sequence[int], peaks: Sequence[tuple[Tensor, Tensor]]) -> int:
    """The index of the largest element, from the start of each block, and its peak with the place in the block."""
    block = int(torch.stack([peak for peak, _ in peaks]).argmax())
    return starts[block] + int(peaks[block][1])


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


def describe(check: OutputCheck) -> str:
    """Describe a check in one line: the error and the allowed error, by the tighter of the two metrics."""
    mismatch = check.mismatch
    if mismatch and not mismatch.wrong:
        return mismatch.hints[0]  # the problem's own `compare` counts no elements, but gives a reason
    if mismatch and mismatch.whole:
        return f"{check.output}: {'never written' if mismatch.whole == 'unwritten' else 'all zeros'}"
    if mismatch and mismatch.allowed:
        return f"{check.output}: {_wrong(mismatch)}: further from what is expected than {mismatch.allowed}"
    if check.max_error is None or check.rms_error is None:
        return f"{check.output}: " + (f"{_wrong(mismatch)}, but all must be equal" if mismatch else "equal")
    tighter = max((check.max_error, check.rms_error), key=lambda budget: budget.error / budget.allowed)
    if mismatch and mismatch.nan_got > mismatch.nan_expected:
        counts = f"{mismatch.nan_got:,} in yours, {mismatch.nan_expected:,} expected"
        return f"{check.output}: NaN ({counts}), {_wrong(mismatch)}"
    if mismatch and tighter.met:
        return f"{check.output}: NaN or infinity in the wrong place, {_wrong(mismatch)}"
    metric = "relative RMS error" if tighter is check.rms_error else "relative error"
    allowed = f"allowed {tighter.allowed:.2g} ({_reason(tighter, check.dtype)})"
    line = f"{check.output}: your {metric} {tighter.error:.2g}, {allowed}"
    return f"{line}, {_wrong(mismatch)}" if mismatch else line


def _wrong(mismatch: Mismatch) -> str:
    return f"{mismatch.wrong:,} of {mismatch.total:,} elements wrong ({mismatch.percent:.3g} %)"


def _reason(budget: Budget, dtype: str) -> str:
    if budget.allowed < max(budget.floor, budget.factor * budget.reference_error):
        return "never more than half of the value"
    if budget.allowed > budget.floor:
        return f"{budget.factor:g} × the reference's own in {dtype}"
    ulps = budget.floor / DTYPES[dtype].eps
    return f"{f'{ulps:,.0f}' if ulps >= 10 else f'{ulps:.2g}'} ulps of {dtype}"
