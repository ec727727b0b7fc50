"""CSV as spreadsheets write and read it: what is written is read, and no cell is run as a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from harness.errors import UsageError
from kernelmark.text import spreadsheet

TEXTS = ("=cmd|' /C calc'!A0", "+1", "-1", "@x", "'=x", "''x", "'", "a,b;c", 'say "x"', "two\nlines", "Zoë 李雷", "")


def test_what_is_written_is_read_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    text = spreadsheet.table([("Author", "message"), *((name, place) for place, name in enumerate(TEXTS))])
    (file := tmp_path / "marks.csv").write_bytes(spreadsheet.encoded(text))
    assert file.read_bytes().startswith(b"\xef\xbb\xbfAuthor,message\r\n")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    rows = spreadsheet.read(file)
    assert [(row.cells["author"], row.cells["message"]) for row in rows] == [
        (name, str(n)) for n, name in enumerate(TEXTS)
    ]
    assert spreadsheet.table([("\tx", -1)]) == "'\tx,-1\r\n"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_of_other_countries_and_short_rows_are_read(separator: str, tmp_path: Path) -> None:
    lines = ("Full name|ID|more", '"Lee| Kim"|7|x|y', "||", "Ada")
    (file := tmp_path / "in.csv").write_text("\n".join(line.replace("|", separator) for line in lines))
    assert spreadsheet.read(file) == [
        (f"{file}:2", {"full name": f"Lee{separator} Kim".strip(), "id": "7", "more": "x"}),
        (f"{file}:4", {"full name": "Ada", "id": "", "more": ""}),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe", "cannot be read as CSV"),
        (b"author,when\n" + b"x" * 200_000, "cannot be read as CSV"),
    ],
)
def test_what_is_no_such_table_is_told(content: bytes, why: str, tmp_path: Path) -> None:
    (file := tmp_path / "in.csv").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        spreadsheet.read(file)
