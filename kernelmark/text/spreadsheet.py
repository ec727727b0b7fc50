"""Reads and writes CSV like spreadsheets and learning platforms; kernelmark can read what it writes.

`course` and `diagnostics` call it. Trusted code over untrusted cells. Spreadsheets treat a cell that begins with = as a
formula, and recognize UTF-8 by the byte order mark. Where the decimal sign is a comma, they separate cells by
semicolons.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.errors import UsageError
from harness.files import outside

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SEPARATORS = ",;\t"


class CsvFile(NamedTuple):
    """The unchanged content of a file: the separator, the rows, and the number of each row's last line."""

    separator: str
    rows: list[list[str]]
    lines: list[int]


class CsvRow(NamedTuple):
    """One row: its place in the file, for messages, and its cells by column name."""

    where: str
    cells: dict[str, str]


def table(rows: Iterable[Sequence[object]], *, newline: str = "\r\n") -> str:
    """The rows as CSV. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    return joined(([_harmless(cell) for cell in row] for row in rows), newline=newline)


def joined(rows: Iterable[Sequence[object]], *, newline: str = "\r\n", separator: str = ",") -> str:
    """The rows as CSV, without changes to the cells."""
    written = io.StringIO()
    csv.writer(written, lineterminator=newline, delimiter=separator).writerows(rows)
    return written.getvalue()


def encoded(text: str) -> bytes:
    """The bytes of a file with this table: UTF-8 with a byte order mark."""
    return text.encode("utf-8-sig", "backslashreplace")


def raw(file: Path) -> CsvFile:
    """Read a CSV file without changing its cells. Commas, semicolons or tabs separate them.

    Raises:
        UsageError: it cannot be read, or is no CSV in UTF-8.
    """
    try:
        content = outside.read(file, outside.TEXT_BYTES, follow=True).decode("utf-8-sig")
        separator = max(_SEPARATORS, key=content.partition("\n")[0].count)
        rows = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
        numbered = [(rows.line_num, row) for row in rows]
    except OSError as error:
        raise UsageError(str(file), f"cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(str(file), f"cannot be read as CSV ({error})", "save it as CSV, in UTF-8") from None
    return CsvFile(separator, [row for _, row in numbered], [number for number, _ in numbered])


def read(file: Path) -> list[CsvRow]:
    """The rows of a CSV file after the first. Column names are in lower case.

    Raises:
        UsageError: as for `raw`.
    """
    sheet = raw(file)
    head = sheet.rows[0] if sheet.rows else []
    lines = list(zip(sheet.lines, sheet.rows, strict=True))[1:]
    return [CsvRow(f"{file}:{line}", cells(head, row)) for line, row in lines if any(row)]


def cells(head: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    """The cells of a row by column name in lower case. Cells that a short row lacks are empty."""
    names = [_meant(cell).casefold() for cell in head]
    return dict.fromkeys(names, "") | dict(zip(names, map(_meant, row), strict=False))


def _harmless(cell: object) -> object:
    """The cell, with an apostrophe before text that a spreadsheet would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(_FORMULA) else cell


def _meant(cell: str) -> str:
    """The text of a cell without the apostrophe that `_harmless` adds."""
    return (cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell).strip()
