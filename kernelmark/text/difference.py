"""Formats two runs of a problem: both times, then a unified diff of their sources.

Trusted code over untrusted text: names and lines go through `visible`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple

from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.text.terminal import Line, visible
from leaderboard.standings.ranking import ACROSS_CARDS, overlap
from leaderboard.text.units import interval

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class Sourced(NamedTuple):
    """A run with its source."""

    verdict: Verdict
    source: Submission


def lines(before: Sourced, after: Sourced) -> Iterator[str]:
    """Both times in one line, then the diff of each file that differs."""
    times = f"{_time(after.verdict)}, before {_time(before.verdict)}"
    yield Line(times + _faster(before.verdict, after.verdict), "bold")
    changes = [
        Line(line, "bold" if line.startswith(("+++ ", "--- ")) else _STYLES.get(line[:1], ""), hang=2)
        for line in diff(before, after)
    ]
    yield from changes or [Line("the sources are the same")]


def diff(before: Sourced, after: Sourced) -> Iterator[str]:
    """The unified diff only; the other files of the sources are matched by name."""
    old, new = before.source, after.source
    pairs = [((old.name, old.source), (new.name, new.source))]
    for name in sorted(dict([*old.beside, *new.beside])):
        pairs.append(((name, dict(old.beside).get(name, b"")), (name, dict(new.beside).get(name, b""))))
    for (old_name, was), (new_name, now) in pairs:
        titles = f"{before.verdict.run}  {old_name}", f"{after.verdict.run}  {new_name}"
        for line in difflib.unified_diff(_lines(was), _lines(now), titles[0], titles[1], lineterm=""):
            yield visible(line.expandtabs(4))


def _lines(content: bytes) -> list[str]:
    """The lines of a source; only a newline ends one."""
    return content.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")


def _time(verdict: Verdict) -> str:
    return interval(verdict.score) if verdict.score else verdict.outcome.value.replace("_", " ")


def _faster(before: Verdict, after: Verdict) -> str:
    """How many times as fast the second run is, or why that is unknown."""
    if before.score is None or after.score is None:
        return ""
    devices = [verdict.environment.device_name for verdict in (before, after)]
    if devices[0] != devices[1]:
        return f": on {visible(devices[1])}, before on {visible(devices[0])}"
    if before.problem.sha256 != after.problem.sha256:
        return ": the problem has changed in between"
    if before.environment.interpreted or after.environment.interpreted:
        return ": a time in Triton's interpreter says nothing about speed"
    if before.timing != after.timing:
        return ": the two were not timed alike"
    if overlap(before.score, after.score):
        return ": no difference was measured"
    cards = {verdict.environment.device_uuid_sha256 for verdict in (before, after)}
    if overlap(before.score, after.score, same_card=len(cards) == 1):
        return f": no difference was measured, since two devices of this name can differ by {ACROSS_CARDS}"
    return f": {before.score.median_ns / (after.score.median_ns or 1):.3f} times as fast"
