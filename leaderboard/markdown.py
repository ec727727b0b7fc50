"""The board as Markdown: tables in, one text out, and the file written whole.

The front door publishes with it. Trusted code, but the names of submitted files are hostile: whatever stands in one
must come out as those very characters, and never as a column, a link or HTML. Nothing here depends on the time of day,
so an unchanged ledger gives an unchanged file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from harness.errors import HarnessError
from leaderboard.durable import write_whole
from leaderboard.ranking import Row, Table, TableKey
from leaderboard.units import interval, ratio

_COLUMNS = ("rank", "author", "submission", "language", "time per call")
_MORE_COLUMNS = ("cases", "mode", "sandbox", "date (UTC)", "kernel", "run")
_RIGHT = {"rank", "time per call", "cases"}
_LEGEND = (
    "A time is the geometric mean over the benchmark cases of the median time per call, with its confidence interval. "
    "Rows share a rank when their interval overlaps that of the first row of this rank. "
    "A column × shows how many times faster than a baseline a submission was: the geometric mean over the cases, with "
    "its confidence interval, of ratios taken pair by pair from rounds that alternated in the same grading.\n"
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", '"': "&quot;"}
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def board(tables: Iterable[Table]) -> str:
    """The whole board, a section a problem, in the order of the tables."""
    parts = ["# Leaderboard\n", _LEGEND]
    for problem, group in groupby(tables, key=lambda table: table.key.problem):
        parts.append(f"## {escape(problem)}\n")
        for table in group:
            parts.append(f"### {_heading(table.key)}\n")
            baselines = table.baselines
            parts.append(_head(baselines) + "".join(_line(row, baselines) for row in table.rows))
    if len(parts) == 2:
        parts[1:] = ["No submission has been accepted yet.\n"]
    return "\n".join(parts)


def write_board(path: Path, tables: Iterable[Table]) -> None:
    """Write the board, replacing the file in one step: a reader sees the old or the new one.

    Raises:
        HarnessError: it cannot be written; the old file is as it was.
    """
    try:
        write_whole(path, board(tables).encode(), replace=True)
    except OSError as error:
        raise HarnessError(f"{path}: the board cannot be written ({error.strerror})") from error


def escape(text: str) -> str:
    """Text that Markdown and HTML render as these characters, in a paragraph, a heading or a cell of a table.

    Characters that cannot be seen (line breaks, controls, direction marks) come out as their code, `\\x0a`.
    """
    escaped = "".join(_escape_character(character) for character in text)
    return re.sub(r"(?i)www\.", lambda found: found[0][:3] + "\\.", escaped)  # GitHub makes links of bare addresses


def _escape_character(character: str) -> str:
    if character in _ENTITIES:
        return _ENTITIES[character]
    if unicodedata.category(character) in _INVISIBLE:
        code = ord(character)
        return rf"\\x{code:02x}" if code < 0x100 else rf"\\u{code:04x}"
    return "\\" + character if character in "\\`*_{}[]()#+!~$:/@^=" else character


def _heading(key: TableKey) -> str:
    parts = [escape(key.device_name), f"protocol {key.protocol}", f"problem {key.problem_sha256[:12]}"]
    if not key.isolated:
        parts.append("not isolated")
    if key.interpreted:
        parts.append("Triton interpreter: not a measure of speed")
    return " · ".join(parts)


def _head(baselines: Sequence[str]) -> str:
    names = (*_COLUMNS, *(f"× {escape(name)}" for name in baselines), *_MORE_COLUMNS)
    rules = ("---:" if name in _RIGHT or name.startswith("×") else ":---" for name in names)
    return f"| {' | '.join(names)} |\n|{'|'.join(rules)}|\n"


def _line(row: Row, baselines: Sequence[str]) -> str:
    speedups = (row.over(name) for name in baselines)
    cells = (
        str(row.rank),
        escape(row.author),
        escape(row.submission),
        row.language,
        interval(row.score),
        *(ratio(speedup) if speedup else "" for speedup in speedups),
        str(row.cases),
        ", ".join(row.modes),
        row.sandbox,
        _date(row.created_at),
        row.sha256[:12],
        row.run,
    )
    return f"| {' | '.join(cells)} |\n"


def _date(moment: datetime) -> str:
    with suppress(OverflowError):  # in the first and the last hours of the calendar: then in its own time zone
        moment = moment.astimezone(UTC)
    return f"{moment:%Y-%m-%d}"
