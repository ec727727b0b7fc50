"""Tables in CSV, as spreadsheets and learning platforms write and read them: all that kernelmark writes it also reads.

`course` and `diagnostics` ask. Trusted; what is in the tables is not. A spreadsheet takes a cell that begins with = for
a formula, and knows UTF-8 by its byte order mark; where numbers have a comma, it separates cells by semicolons.
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


class SheetRow(NamedTuple):
    """One row: where it is, for a message, and its cells by column."""

    where: str
    cells: dict[str, str]


def table(rows: Iterable[Sequence[object]], *, newline: str = "\r\n") -> str:
    """The rows as CSV. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    written = io.StringIO()
    csv.writer(written, lineterminator=newline).writerows([_harmless(cell) for cell in row] for row in rows)
    return written.getvalue()


def encoded(text: str) -> bytes:
    """The bytes of a file with this table."""
    return text.encode("utf-8-sig", "backslashreplace")


def read(file: Path, needed: Sequence[str] = ()) -> list[SheetRow]:
    """The rows of a CSV file, separated by commas, semicolons or tabs. Names of columns are in lower case.

    Raises:
        UsageError: it cannot be read, is no CSV in UTF-8, or lacks a column that is `needed`.
    """
    try:
        content = outside.read(file, outside.TEXT_BYTES, follow=True).decode("utf-8-sig")
        separator = max(_SEPARATORS, key=content.partition("\n")[0].count)
        rows = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
        names = [_meant(cell).casefold() for cell in next(rows, [])]
        if missing := [name for name in needed if name not in names]:
            raise UsageError(str(file), f"has no column {missing[0]!r}", f"it needs {' and '.join(needed)}")
        blank = dict.fromkeys(names, "")
        return [
            SheetRow(f"{file}:{rows.line_num}", blank | dict(zip(names, map(_meant, row), strict=False)))
            for row in rows
            if any(row)
        ]
    except OSError as error:
        raise UsageError(str(file), f"cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(str(file), f"cannot be read as CSV ({error})", "save it as CSV, in UTF-8") from None


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(_FORMULA) else cell


def _meant(cell: str) -> str:
    """The text of a cell, without the apostrophe that keeps it from being a formula."""
    return (cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell).strip()
