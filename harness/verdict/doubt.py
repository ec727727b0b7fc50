"""Reasons to trust a number less: what each means, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, Self

from harness.verdict.record import Record

_QUIET = "grade again on a quiet machine"
_NOTHING = ""


class DoubtCode(StrEnum):
    """All reasons to trust a number less; docs/timing.md says when each is given."""

    meaning: str
    for_author: str
    """What the author can do about it; empty if there is nothing."""
    for_grader: str
    """What the person who grades can do about it; empty if there is nothing."""

    def __new__(cls, code: str, meaning: str, for_author: str = "", for_grader: str = "") -> Self:
        made = str.__new__(cls, code)
        made._value_, made.meaning, made.for_author, made.for_grader = code, meaning, for_author, for_grader
        return made

    WARM_CACHE = (
        "warm_cache",
        "Some of the inputs may have been in the cache already, so memory looks faster than it is.",
    )
    BUSY_MACHINE = (
        "busy_machine",
        "Other programs took CPU time away while this was timed: on a quiet machine it may be faster.",
        _NOTHING,
        _QUIET,
    )
    DRIFT = (
        "drift",
        "The device warmed up, or another program used it: the median is between the beginning and the end.",
        "rely on the speedup, which is the steadier number",
    )
    TWO_MODES = (
        "two_modes",
        "The times have two centres: the median is one of them, and another grading may find the other.",
        "rely on the speedup, which is the steadier number",
    )
    THROTTLED = (
        "throttled",
        "The device ran slower than it can, to limit its power or temperature: a cooler one would be faster.",
        "rely on the speedup, which is the steadier number",
    )
    NOT_REPLAYED = (
        "not_replayed",
        "The submission's own code made the calls: its work on the host is part of the time, which has no rank.",
        'provide what the text says is missing; docs/timing.md, "Replayed calls", lists all that a replay needs',
    )
    CLOCKS_DISAGREE = (
        "clocks_disagree",
        "A coarser clock shows that the calls took longer than the finest one says; that much counts.",
        _NOTHING,
        _QUIET,
    )
    BEYOND_BUDGET = (
        "beyond_budget",
        "The problem's own tolerance accepts an answer that kernelmark's error budget would refuse.",
        "compute in a higher precision, if the board is to show more than that this tolerance allows it",
    )
    KNOWN_INPUTS = (
        "known_inputs",
        "All inputs can be known beforehand, and their answers be looked up: the time has no rank.",
        _NOTHING,
        "tell the authors of the problem",
    )
    NO_BASELINE = ("no_baseline", "No speedup over that baseline is known for this run.")


NoRank = Literal["not_replayed", "known_inputs"]
"""Why a time has no rank, however precise it is."""


def no_rank(as_required: bool, doubts: Iterable[str]) -> NoRank | None:
    """Why a time has no rank, from whether it was taken as required and the codes of its doubts; None if it has one."""
    if not as_required:
        return "not_replayed"
    return "known_inputs" if DoubtCode.KNOWN_INPUTS in doubts else None


_KNOWN = {code.value: code for code in DoubtCode}


class Doubt(Record):
    """A reason to trust a number less; recorded, never acted upon by deleting samples."""

    code: str
    """One of `DoubtCode`, possibly a later version's."""
    text: str
    """What was measured, in one line."""

    @property
    def meaning(self) -> str:
        """What it means for the number; empty for a code unknown to this version."""
        known = _KNOWN.get(self.code)
        return known.meaning if known else ""

    @property
    def for_author(self) -> str:
        """What the author can do about it; empty if there is nothing."""
        known = _KNOWN.get(self.code)
        return known.for_author if known else ""

    @property
    def advice(self) -> str:
        """What the author and the person who grades can do about it; empty if there is nothing."""
        known = _KNOWN.get(self.code)
        return "; ".join(filter(None, (known.for_author, known.for_grader))) if known else ""
