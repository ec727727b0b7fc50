"""What a claim is, and what was found about it: rows with intervals, and an answer that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.headlines.bench import Bench


class Answer(StrEnum):
    """Whether a claim is true on this device."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    DEPENDS = "depends on"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Row:
    """One number, with its interval where it has one: a time of `what` in one case, or how many times as fast it is."""

    case: str
    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" [{self.low:.4g}, {self.high:.4g}]"
        return f"{self.value:.4g} {self.unit}{interval}"


@dataclass(frozen=True)
class Finding:
    """The answer to one claim, why, and every number behind it."""

    answer: Answer
    reason: str
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A sentence of a lecture, and how to find out whether it is true."""

    name: str
    lecture: str
    says: str
    measure: Callable[[Bench], Finding]


class NotHereError(Exception):
    """This machine cannot measure a claim; the text says what it lacks."""


def judged(rows: Sequence[Row], what: str, *, at_least: float = 0.0, at_most: float = float("inf")) -> Finding:
    """The answer that the rows of `what` give to a claim that its ratio is within these bounds, in every case.

    It holds where the whole interval is within them, and does not where none of it is. If cases disagree, or an
    interval has a bound inside it, the answer is that it depends on the case.
    """
    asked = [row for row in rows if row.what == what]
    if not asked:
        return Finding(Answer.NOT_MEASURED, f"nothing was measured of {what}", tuple(rows))
    inside = [row for row in asked if at_least <= _low(row) and _high(row) <= at_most]
    outside = [row for row in asked if _high(row) < at_least or at_most < _low(row)]
    answer = Answer.DEPENDS
    if len(inside) == len(asked):
        answer = Answer.HOLDS
    elif len(outside) == len(asked):
        answer = Answer.DOES_NOT_HOLD
    bounds = [f"at least {at_least:g}"] * (at_least > 0) + [f"at most {at_most:g}"] * (at_most < float("inf"))
    seen = "; ".join(f"{row.case}: {row}" for row in asked)
    return Finding(answer, f"{what} should be {' and '.join(bounds)}, and is: {seen}", tuple(rows))


def _low(row: Row) -> float:
    return row.value if row.low is None else row.low


def _high(row: Row) -> float:
    return row.value if row.high is None else row.high


def ratio(slow: Row, fast: Row, what: str) -> Row:
    """How many times as fast one is as the other, of two times that were not measured in alternation.

    The interval spans the extremes of both, so it is wider than a paired one.
    """
    return Row(fast.case, what, slow.value / fast.value, "×", _low(slow) / _high(fast), _high(slow) / _low(fast))
