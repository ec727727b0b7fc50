"""Marks in the platforms' own forms, with a prepared judge, and CSV as spreadsheets write and read it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from harness.errors import SandboxError, UsageError
from kernelmark.text import spreadsheet
from tests.unit.conftest import Answering, Command, Said
from tests.verdicts import accepted, failed

KERNEL = "def twice(x, y): y.copy_(2 * x)\n"
WORKSHEET = """\ufeffIdentifier;"Full name";Status;Grade;"Maximum Grade";"Last modified (grade)";"Feedback comments"\r
"Participant 31415";"Ada, Lovelace";"Submitted; late";;10,00;-;\r
"Participant 7";Bob;-;;10,00;-;\r
"Participant 8";Cyd;-;3.00;10,00;-;seen\r
"Participant 9";Kim Lee;-;;10,00;-;\r
"""
GRADEBOOK = """Student,ID,SIS User ID,Section,Warm-up (11),A kernel (12),Final Score
    Points Possible,,,,5,10,(read only)
"Lovelace, Ada",31415,s1,A,4,,90
"=Bob",7,s2,A,,,
"Kim Lee",9,s3,A,,,
"""
FILES = {
    "Ada Lovelace_31415_assignsubmission_file/k.py": KERNEL,
    "Bob_7_assignsubmission_file/k.py": KERNEL,
    "Kim Lee_9_assignsubmission_file/k.ipynb": "{}",
    "Zed_66_assignsubmission_file/k.py": KERNEL,
}
ADA = "accepted, 4 of 4 tests right, 57.3 µs [57.0, 57.6], 1.6 × eager, 13 of 13 points"
BOB = "wrong answer, 1 of 2 tests right, 5 of 13 points: it is not right"
KIM = "not graded, 0 of 13 points: Kim-Lee: no kernel (found k.ipynb); a notebook cannot be graded: "


@pytest.fixture
def handed_in(competition: Path, judge: Answering) -> Path:
    for name, content in FILES.items():
        (file := competition / "handins" / name).parent.mkdir(parents=True)
        file.write_text(content)
    with (competition / "kernelmark.toml").open("a") as settings:
        settings.write("[marks]\ntests = 10\nspeedup = [{ over = 1.5, points = 3 }]\n")
    (competition / "worksheet.csv").write_bytes(WORKSHEET.encode())
    (competition / "gradebook.csv").write_text(GRADEBOOK)
    judge(
        accepted(author="Ada-Lovelace", speedups={"eager": 1.6}),
        failed(author="Bob", run="1" * 16),
        accepted(author="Zed", run="2" * 16),
    )
    return competition


def graded(command: Command, *options: str) -> Said:
    return command("grade", "double", "handins", "--csv", "marks.csv", *options)


def rows(name: str, separator: str = ",") -> list[list[str]]:
    with Path(name).open(newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file, delimiter=separator))


def test_moodles_worksheet_is_filled_and_all_else_stays(handed_in: Path, command: Command) -> None:
    result = graded(command, "--gradebook", "worksheet.csv")
    assert "note: worksheet.csv has no row for 1 author with points: Zed\n" in result.err
    assert "worksheet.filled.csv" in result.err
    assert Path("worksheet.csv").read_bytes() == WORKSHEET.encode(), "the platform's own stays"
    head, ada, bob, cyd, kim = rows("worksheet.filled.csv", ";")
    assert head == rows("worksheet.csv", ";")[0]
    assert ada == ["Participant 31415", "Ada, Lovelace", "Submitted; late", "13", "10,00", "-", ADA]
    assert bob == ["Participant 7", "Bob", "-", "5", "10,00", "-", BOB]
    assert cyd == ["Participant 8", "Cyd", "-", "3.00", "10,00", "-", "seen"], "who has no mark here"
    assert (kim[3], kim[6][: len(KIM)]) == ("0", KIM)


@pytest.mark.usefixtures("handed_in")
def test_programs_read_the_points_that_the_marks_have(judge: Answering, command: Command) -> None:
    judge(accepted(author="Ada-Lovelace", speedups={"eager": 1.6}), failed(author="Bob"), SandboxError("no daemon"))
    printed = {row["author"]: row["points"] for row in json.loads(graded(command, "--format", "json").out)["items"]}
    assert printed == {"Ada-Lovelace": 13.0, "Bob": 5.0, "Kim-Lee": 0.0, "Zed": None}
    columns, *marks = rows("marks.csv")
    found = {row[columns.index("author")]: row[columns.index("points")] for row in marks}
    assert found == {"Ada-Lovelace": "13", "Bob": "5", "Kim-Lee": "0", "Zed": ""}


def test_an_author_without_points_may_lack_a_row(handed_in: Path, judge: Answering, command: Command) -> None:
    judge(accepted(author="Ada-Lovelace"), SandboxError("no daemon"), SandboxError("no daemon"), accepted(author="Zed"))
    result = graded(command, "--gradebook", "worksheet.csv")
    assert "Bob: our fault" in result.out
    assert "note: worksheet.csv has no row for 1 author with points: Zed\n" in result.err
    assert rows("worksheet.filled.csv", ";")[2][3] == ""


def test_canvas_gradebook_is_filled_for_the_assignment_that_is_named(handed_in: Path, command: Command) -> None:
    unsaid = graded(command, "--gradebook", "gradebook.csv")
    assert (unsaid.code, unsaid.err.count("\n")) == (2, 1)
    assert "gradebook.csv has the assignments Warm-up (11), A kernel (12); say which with --column NAME" in unsaid.err
    assert graded(command, "--gradebook", "gradebook.csv", "--column", "a kernel").code == 2, "there is a notebook"
    before, after = rows("gradebook.csv"), rows("gradebook.filled.csv")
    assert [row[5] for row in after] == ["A kernel (12)", "10", "13", "5", "0"]
    assert [[*row[:5], *row[6:]] for row in after] == [[*row[:5], *row[6:]] for row in before]


def test_gradescope_gets_results_with_every_part(handed_in: Path, command: Command) -> None:
    result = graded(command, "--gradescope", "out")
    assert "4 files in out/" in result.err
    assert json.loads(Path("out/Ada-Lovelace/results.json").read_text()) == {
        "score": 13.0,
        "output": ADA,
        "output_format": "text",
        "tests": [
            {"name": "tests", "score": 10.0, "max_score": 10.0},
            {"name": "speedup from 1.5 ×", "score": 3.0, "max_score": 3.0},
        ],
    }
    assert json.loads(Path("out/Kim-Lee/results.json").read_text())["score"] == 0


@pytest.mark.usefixtures("handed_in")
def test_marks_that_cannot_be_written_are_refused_before_grading(judge: Answering, command: Command) -> None:
    fake = judge()
    Path("file").touch()
    for option in ("--gradescope", "--feedback"):
        result = graded(command, option, "file/out")
        why = f"file/out cannot be written in {Path.cwd()}/file; name another place"
        assert (result.code, why in result.err) == (2, True)
    assert not fake.asked


def test_the_terminal_has_one_line_for_each_with_the_same_words(handed_in: Path, command: Command) -> None:
    result = graded(command, "--feedback", "feedback")
    ada, bob, kim, zed = result.out.splitlines()
    assert ada.startswith(f"Ada-Lovelace: {ADA} (run ")
    assert bob == f"Bob: {BOB} (run {'1' * 16})"
    assert kim.startswith("Kim-Lee: not graded: Kim-Lee: no kernel (found k.ipynb); ")
    assert zed.startswith("Zed: accepted, 4 of 4 tests right, ")
    assert "/4 " not in result.err, "the progress has no second line for each"
    assert (
        "points      5 of 13 (tests 5 of 10, speedup from 1.5 × 0 of 3)"
        in (handed_in / "feedback/Bob_7_assignfeedback_file_feedback.txt").read_text()
    )


def test_the_ledger_fills_a_sheet_by_names(handed_in: Path, command: Command) -> None:
    graded(command)
    Path("sheet.csv").write_text("Identifier,Full name,Grade\nParticipant 1,Ada Lovelace,\nParticipant 7,Bob,\n")
    assert command("marks", "double", "--gradebook", "sheet.csv").out == ""
    assert [row[2] for row in rows("sheet.filled.csv")] == ["Grade", "13", "5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "A kernel"), "--column goes with --gradebook"),
        (("--gradebook", "in.csv"), "in.csv is no sheet of Moodle or Canvas with a column for points"),
        (("--gradebook", "gradebook.csv", "--column", "C"), "say which with --column NAME"),
    ],
)
def test_an_unusable_sheet_is_refused(
    handed_in: Path, command: Command, options: tuple[str, ...], message: str
) -> None:
    Path("in.csv").write_text("name,points\nAda,\n")
    result = graded(command, *options)
    assert (result.code, result.err.count("\n"), result.out) == (2, 1, "")
    assert message in result.err
    assert not Path("leaderboard").exists()


def test_forms_need_a_rule(competition: Path, command: Command) -> None:
    result = command("marks", "double", "--gradescope", "out")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--gradescope holds points, and no rule says how many; set [marks] in kernelmark.toml" in result.err


# ---- CSV as spreadsheets write it

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
def test_an_invalid_csv_file_is_reported(content: bytes, why: str, tmp_path: Path) -> None:
    (file := tmp_path / "in.csv").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        spreadsheet.read(file)
