"""Doubts, which are reasons to trust a time less: what they mean, and what can be done about them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, Self

from harness.verdict.record import FrozenModel

_QUIET = "grade again on a quiet machine"
_NOTHING = ""


class DoubtCode(StrEnum):
    """All kinds of doubts. `kernelmark explain` prints these texts."""

    meaning: str
    when: str
    """The condition for the doubt."""
    for_author: str
    """What the author can do about it; empty if there is nothing."""
    for_grader: str
    """What the person who grades can do about it; empty if there is nothing."""

    def __new__(cls, code: str, meaning: str, when: str, for_author: str = "", for_grader: str = "") -> Self:
        made = str.__new__(cls, code)
        made._value_, made.meaning, made.when = code, meaning, when
        made.for_author, made.for_grader = for_author, for_grader
        return made

    WARM_CACHE = (
        "warm_cache",
        "Some of the inputs may have been in the cache already, so memory looks faster than it is.",
        "plain calls on a GPU: the inputs of a round are less than twice the L2",
    )
    BUSY_MACHINE = (
        "busy_machine",
        "Other programs took CPU time away while this was timed: on a quiet machine it may be faster.",
        "CPU: others used at least 10 % (and 0.1 s) of the CPU time while a case was timed, by /proc/stat, steal "
        "included; not given to a judge in a container, which does not see a sandbox's processes",
        _NOTHING,
        _QUIET,
    )
    DRIFT = (
        "drift",
        "The device warmed up, or another program used it: the median is between the beginning and the end.",
        "the times of rounds or blocks have a trend (Mann–Kendall, p < 0.01) of at least 1 % from first to last",
        "rely on the speedup, which is the steadier number",
    )
    TWO_MODES = (
        "two_modes",
        "The times have two centres: the median is one of them, and another grading may find the other.",
        "rounds or blocks fall into two groups, each at least a tenth of them, at least 2 % apart",
        "rely on the speedup, which is the steadier number",
    )
    THROTTLED = (
        "throttled",
        "The device ran slower than it can, to limit its power or temperature: a cooler one would be faster.",
        "NVML named a reason for lower clocks: power, heat, hardware slowdown",
        "rely on the speedup, which is the steadier number",
    )
    NOT_REPLAYED = (
        "not_replayed",
        "The submission's own code made the calls: its work on the host is part of the time, which has no rank.",
        "on a verdict, on a GPU: the calls cannot be replayed, so plain ones were timed",
        'provide what the text says is missing; docs/timing.md, "Replayed calls", lists all that a replay needs',
    )
    CLOCKS_DISAGREE = (
        "clocks_disagree",
        "A coarser clock shows that the calls took longer than the finest one says; that much counts.",
        "replayed calls: in more than one in twenty, or by the host's median, a coarser clock shows more time than "
        "CUPTI's",
        _NOTHING,
        _QUIET,
    )
    BEYOND_BUDGET = (
        "beyond_budget",
        "The problem's own tolerance accepts an answer that kernelmark's error budget would refuse.",
        "on a verdict, where `rtol` or the check of a foreign reference decides: an accepted answer is beyond the "
        'error budget (docs/problems.md, "Tolerance")',
        "compute in a higher precision, if the board is to show more than that this tolerance allows it",
    )
    KNOWN_INPUTS = (
        "known_inputs",
        "All inputs can be known beforehand, and their answers be looked up: the time has no rank.",
        'on a verdict: the problem\'s inputs can be known beforehand (docs/import.md, "Inputs that can be known")',
        _NOTHING,
        "tell the authors of the problem",
    )
    NO_BASELINE = (
        "no_baseline",
        "No speedup over that baseline is known for this run.",
        "on a verdict: a baseline failed, or its times gave no ratio; the text says why",
    )


NoRank = Literal["not_replayed", "known_inputs"]
"""Why a time has no rank, however precise it is."""


def no_rank(as_required: bool, doubts: Iterable[str]) -> NoRank | None:
    """Why a time has no rank; None if it has one.

    Args:
        as_required: whether it was timed as the problem requires.
        doubts: the codes of its doubts.
    """
    if not as_required:
        return "not_replayed"
    return "known_inputs" if DoubtCode.KNOWN_INPUTS in doubts else None


_KNOWN = {code.value: code for code in DoubtCode}


class Doubt(FrozenModel):
    """A reason to trust a time less. It is recorded; no sample is removed because of it."""

    code: str
    """One of `DoubtCode`, possibly a later version's."""
    text: str
    """What was measured, in one line."""

    @property
    def meaning(self) -> str:
        """What it means for the time; empty if this version does not know the code."""
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
