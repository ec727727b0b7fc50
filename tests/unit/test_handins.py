"""`kernelmark grade PROBLEM HANDINS`: folders and archives as learning platforms make them, with a prepared judge."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from kernelmark.commands.handins import handed_in
from kernelmark.text.marks import COLUMNS
from tests.unit.conftest import Command, Judge
from tests.verdicts import accepted, failed

KERNEL = "def twice(x, y): y.copy_(2 * x)\n"
FILES = {
    "Ada Lovelace_31415_assignsubmission_file/softmax.py": KERNEL,  # Moodle
    "Ada Lovelace_31415_assignsubmission_file/report.pdf": "%PDF",
    "hopper_LATE_31415_92653_kernel.cpp": KERNEL,  # Canvas
    "team_1.py": KERNEL,
    "__MACOSX/._team_1.py": "",
    "Two/a.py": KERNEL,
    "Two/deep/b.cu": KERNEL,
}


def folder(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = tmp_path / "handins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "handins"


def archive(tmp_path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(tmp_path / "handins.zip", "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return tmp_path / "handins.zip"


@pytest.mark.parametrize("place", [folder, archive])
@pytest.mark.parametrize("inside", ["", "all of them/"])
def test_each_author_has_one_hand_in(place: Callable[..., Path], inside: str, tmp_path: Path) -> None:
    found = handed_in(place(tmp_path, {f"{inside}{name}": content for name, content in FILES.items()}))
    assert [each.author for each in found] == ["Ada-Lovelace", "Two", "hopper", "team_1"]
    ada, two, hopper, team = found
    assert (ada.submission().name, ada.submission().language) == ("softmax.py", "py")
    assert hopper.submission().source == KERNEL.encode()
    assert team.path == "team_1.py"
    with pytest.raises(UsageError, match=r"Two: handed in 2 kernels \(Two/a.py, Two/deep/b.cu\); leave one"):
        two.submission()


def test_what_is_no_hand_in_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    for place, why in (
        (tmp_path / "text.zip", "is not a zip archive"),
        (tmp_path / "missing", "No such file"),
        (folder(tmp_path, {"notes.txt": ""}), r"holds no kernel; its files end in .py, .cu or .cpp"),
    ):
        with pytest.raises(UsageError, match=why):
            handed_in(place)


def test_no_more_of_an_archive_is_read_than_a_submission_may_have(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("ada.py", b" " * (64 << 20))
    [bomb] = handed_in(tmp_path / "bomb.zip")
    with pytest.raises(UsageError, match=r"ada\.py: is larger than 1,048,576 bytes"):
        bomb.submission()


def test_marks_and_feedback_are_written(competition: Path, command: Command, judge: Callable[..., Judge]) -> None:
    place = folder(competition, {**FILES, "zed.py": KERNEL})
    judge(accepted(), failed(message="=cmd|' /C calc'!A0"), failed(message="@wrong"), accepted())
    said = command("grade", "double", str(place), "--csv", "out/marks.csv", "--feedback", "out/feedback", "--no-record")
    assert said.code == 2, said.err  # Two handed in two
    with (competition / "out/marks.csv").open(newline="") as file:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in csv.reader(file)][1:]
    assert [(row["author"], row["outcome"]) for row in rows] == [
        ("Ada-Lovelace", "accepted"),
        ("Two", "not graded"),
        ("hopper", "wrong answer"),
        ("team_1", "wrong answer"),
        ("zed", "accepted"),
    ]
    assert rows[0]["time_ns"] == "57300"
    assert rows[2]["message"] == "'=cmd|' /C calc'!A0", "no spreadsheet runs it"
    assert sorted(path.stem for path in (competition / "out/feedback").iterdir()) == [row["author"] for row in rows]
    assert "handed in 2 kernels" in (competition / "out/feedback/Two.txt").read_text()
    assert (
        (competition / "out/feedback/zed.txt").read_text().startswith("zed.py\naccepted: 57.3 µs [57.0, 57.6] a call\n")
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "needs either --changed BASE or PROBLEM HANDINS"),
        (("double",), "needs either --changed BASE or PROBLEM HANDINS"),
        (("double", "handins", "--changed", "main"), "needs either"),
        (("--changed", "main", "--csv", "marks.csv"), "--csv and --feedback go with HANDINS"),
        (("nothing", "handins"), "no such problem"),
    ],
)
def test_one_of_the_two_ways_is_needed(
    arguments: tuple[str, ...], why: str, competition: Path, command: Command
) -> None:
    folder(competition, {"ada.py": KERNEL})
    said = command("grade", *arguments)
    assert (said.code, said.out) == (2, "")
    assert why in said.err
    assert len(said.err.splitlines()) == 1
