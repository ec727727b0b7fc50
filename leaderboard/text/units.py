"""Times, ratios, shares and dates for people: the one place where a number of nanoseconds gets a unit.

The board and the command line call it. Trusted. Everywhere else a time is an integer in nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.verdict import Interval, Ratio

_UNITS = (("ns", 0), ("µs", 3), ("ms", 6), ("s", 9))  # and how many decimals of it make one nanosecond
_SIZES = (("B", 0), ("kB", 3), ("MB", 6), ("GB", 9))
_WIDE = 1.5  # from this ratio of an interval's ends on, they need not be in one unit to be compared


def duration(ns: int) -> str:
    """A time with three significant digits in a suitable unit: 57312 → "57.3 µs"."""
    unit, exponent, decimals = _scale(ns)
    return f"{ns / 10**exponent:.{decimals}f} {unit}"


def apart(ns: float, step: float) -> str:
    """A time with enough decimals to distinguish it from one that is `step` nanoseconds longer."""
    unit, exponent = next(((u, e) for u, e in (("s", 9), ("ms", 6), ("µs", 3)) if ns >= 10**e), ("ns", 0))
    decimals = max(0, exponent - math.floor(math.log10(step)))
    return f"{ns / 10**exponent:.{decimals}f} {unit}"


def interval(score: Interval) -> str:
    """A median and its interval in one unit: "57.3 µs [57.1, 57.6]".

    A narrow interval gets enough decimals to distinguish its ends, down to single nanoseconds. If the ends of a
    wide one have different units by themselves, both are shown with theirs: "834 µs [555 µs, 4.22 ms]".
    """
    unit, exponent, decimals = _scale(score.median_ns)
    if score.high_ns >= _WIDE * score.low_ns and _scale(score.low_ns)[0] != _scale(score.high_ns)[0]:
        return f"{duration(score.median_ns)} [{duration(score.low_ns)}, {duration(score.high_ns)}]"
    width_ns = score.high_ns - score.low_ns
    while decimals < exponent and 0 < width_ns < 10 ** (exponent - decimals):
        decimals += 1
    median, low, high = (f"{ns / 10**exponent:.{decimals}f}" for ns in (score.median_ns, score.low_ns, score.high_ns))
    return f"{median} {unit} [{low}, {high}]"


def ratio(value: Ratio) -> str:
    """A speedup and its interval with equally many decimals: "1.593 [1.588, 1.598]".

    There are three, and fewer from ten on. Below one half there are more if the median needs them for two significant
    digits, or the interval's ends to differ, at most for four significant digits.
    """
    decimals = 3 if value.median < 9.9995 else 2 if value.median < 99.995 else 1
    if 0 < value.median < 0.5:
        zeros = -math.floor(math.log10(value.median))
        decimals = max(decimals, zeros + 1)
        while decimals < zeros + 3 and (value.high - value.low) * 10**decimals < 10:
            decimals += 1
    median, low, high = (f"{number:.{decimals}f}" for number in (value.median, value.low, value.high))
    return f"{median} [{low}, {high}]"


def percent(share: float) -> str:
    """A share of 1: "91 %"; below a tenth with two significant digits, "7.3 %"."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def size(nbytes: int) -> str:
    """Memory with three significant digits in a suitable unit: 23068672 → "23.1 MB"."""
    unit, exponent, decimals = _scale(nbytes, _SIZES)
    return f"{nbytes / 10**exponent:.{decimals}f} {unit}"


def utc(moment: datetime) -> datetime:
    """A moment in UTC; in the first and last hours of the calendar it keeps its own time zone."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment


def local(moment: datetime) -> datetime:
    """A moment in this machine's time zone; in the first and last hours of the calendar it keeps its own."""
    try:
        return moment.astimezone()
    except OverflowError:
        return moment


def date(moment: datetime) -> str:
    """The day of a moment in UTC: `2026-01-31`."""
    return utc(moment).date().isoformat()


def minute(moment: datetime) -> str:
    """The minute of a moment in UTC: `2026-01-31 23:59`."""
    return utc(moment).replace(tzinfo=None).isoformat(" ", "minutes")


def _scale(ns: int, units: Sequence[tuple[str, int]] = _UNITS) -> tuple[str, int, int]:
    """A unit, its power of ten in nanoseconds, and the decimals that give three digits *after* rounding."""
    for unit, exponent in units:
        if ns < 999.5 * 10**exponent or unit == units[-1][0]:
            break
    value = ns / 10**exponent
    return unit, exponent, min(exponent, 2 if value < 9.995 else 1 if value < 99.95 else 0)
