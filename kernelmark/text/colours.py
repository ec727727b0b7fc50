"""Colours the lines of a command's output for a terminal: the one place that knows what has which colour. Trusted.

It gets lines in which hostile text is visible already, and tells them apart by their labels and their beginnings: text
of several lines, as a log, is indented further, so no submission can write a line with a label. Without its escape
sequences, each line is as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import click

from harness.verdict import Outcome, Verdict
from kernelmark.text.terminal import INDENT

Style = Mapping[str, Any]
Colouring = Callable[[Iterable[str]], Iterator[str]]

_PLAIN: Style = {}
_TITLE: Style = {"bold": True}
_BESIDE: Style = {"dim": True}
_GOOD: Style = {"fg": "green"}
_DOUBTFUL: Style = {"fg": "yellow"}
_BAD: Style = {"fg": "red"}

_OF_LABELS: Mapping[str, Style] = {
    "failed": _BAD,
    "stopped": _DOUBTFUL,
    "doubt": _DOUBTFUL,
    "warning": _DOUBTFUL,
    "device": _BESIDE,
    "note": _BESIDE,
    "log": _BESIDE,
}
_OF_STATUSES: Mapping[str, Style] = {"ok": _GOOD, "warn": _DOUBTFUL, "fail": _BAD}
_OF_CHANGES: Mapping[str, Style] = {"+": _GOOD, "-": _BAD, "@": {"fg": "cyan"}}
_LABEL = re.compile(r"  \S+ {2,}")  # the whole of a line's first 14 columns
_ROW = re.compile(r" +(?:\d+|-)  ")


def result(outcome: Outcome) -> Colouring:
    """Of one grading: the result first, in its colour; then the submission, and the rest by their labels."""
    unfinished = outcome in (Outcome.UNSUPPORTED, Outcome.INCOMPLETE)
    return partial(_result, _GOOD if outcome is Outcome.ACCEPTED else _DOUBTFUL if unfinished else _BAD)


def labelled(lines: Iterable[str]) -> Iterator[str]:
    """Of lines that follow a result, by their labels."""
    return (_styled(line, _by_label(line)) for line in lines)


def comparison(compared: Verdict) -> Colouring:
    """Of a grading beside another kernel: whether it is faster; else as any grading."""
    if not compared.speedups:
        return result(compared.outcome)
    ratio = compared.speedups[0].ratio
    return partial(_result, _GOOD if ratio.low > 1 else _BAD if ratio.high < 1 else _DOUBTFUL)


def graded(outcome: Outcome | None) -> Colouring:
    """Of one of several gradings: which file it is, then as any grading; None: it was not graded."""

    def lines_of(lines: Iterable[str]) -> Iterator[str]:
        name, *others = lines
        yield _styled(name, _TITLE)
        yield from (result(outcome) if outcome else partial(_result, _BAD))(others)

    return lines_of


def board(lines: Iterable[str]) -> Iterator[str]:
    """Of standings: titles, heads of tables, and notes below them."""
    for line in lines:
        row = _ROW.match(line)
        yield _styled(line, _PLAIN if row else _BESIDE if line.startswith(INDENT) else _TITLE)


def sections(lines: Iterable[str]) -> Iterator[str]:
    """Of a profile's parts: what is indented least is a title."""
    for line in lines:
        yield _styled(line, _PLAIN if line.startswith(INDENT * 2) else _TITLE)


def problem(lines: Iterable[str]) -> Iterator[str]:
    """Of a problem: its title, and the labels of its lines."""
    for number, line in enumerate(lines):
        label = _LABEL.fullmatch(line[:14])
        dimmed = _styled(label[0], _BESIDE) + line[label.end() :] if label else line
        yield _styled(line, _TITLE) if number == 0 else dimmed


def problems(lines: Iterable[str]) -> Iterator[str]:
    """Of a list of problems: each begins with its name; what is indented belongs to the one above."""
    for line in lines:
        name, gap, rest = line.partition("  ")
        yield _styled(name, _TITLE) + gap + rest if name else _styled(line, _BESIDE)


def statuses(lines: Iterable[str]) -> Iterator[str]:
    """Of the doctor: each begins with `ok`, `warn` or `fail`."""
    for line in lines:
        status, gap, rest = line.partition(" ")
        yield _styled(status, _OF_STATUSES[status]) + gap + rest if status in _OF_STATUSES else _styled(line, _TITLE)


def difference(lines: Iterable[str]) -> Iterator[str]:
    """Of two sources: the times first, then what was added and removed."""
    for number, line in enumerate(lines):
        title = number == 0 or line.startswith(("+++ ", "--- "))
        yield _styled(line, _TITLE if title else _OF_CHANGES.get(line[:1], _PLAIN))


def _result(first: Style, lines: Iterable[str]) -> Iterator[str]:
    style = _BESIDE
    for number, line in enumerate(lines):
        if number == 0:
            yield _styled(line, {**first, **_TITLE})
            continue
        if number > 1 and not line.startswith(INDENT * 2):  # a line that is indented further belongs to the last label
            style = _by_label(line)
        yield _styled(line, style)


def _by_label(line: str) -> Style:
    return _OF_LABELS.get(line[len(INDENT) :][:10].strip(), _PLAIN)


def _styled(text: str, style: Style) -> str:
    return click.style(text, **style) if style and text else text
