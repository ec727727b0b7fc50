"""Colours the lines of a result for a terminal. Trusted.

It gets lines in which hostile text is visible already, and tells them apart by their labels: text of several lines, as
a log, is indented further, so no submission can write a line with a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from harness.verdict import Outcome
from kernelmark.text.terminal import INDENT

_OF_LABELS: Mapping[str, Mapping[str, Any]] = {
    "failed": {"fg": "red"},
    "stopped": {"fg": "yellow"},
    "doubt": {"fg": "yellow"},
    "device": {"dim": True},
    "note": {"dim": True},
    "log": {"dim": True},
}


def coloured(lines: Iterable[str], outcome: Outcome) -> Iterator[str]:
    """The lines of `show.check` or `show.verdict`: the result first, in its colour; then the submission, and the rest
    by their labels. Without its escape sequences, each is as it was.
    """
    style = _OF_LABELS["note"]
    for number, line in enumerate(lines):
        if number == 0:
            yield click.style(line, fg=_colour(outcome), bold=True)
            continue
        if number > 1 and not line.startswith(INDENT * 2):  # a line that is indented further belongs to the last label
            style = _OF_LABELS.get(line[len(INDENT) :][:10].strip(), {})
        yield click.style(line, **style) if style and line else line


def _colour(outcome: Outcome) -> str:
    if outcome is Outcome.ACCEPTED:
        return "green"
    return "yellow" if outcome in (Outcome.UNSUPPORTED, Outcome.INCOMPLETE) else "red"
