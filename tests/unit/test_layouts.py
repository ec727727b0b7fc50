"""Folders and archives as learning platforms make them: the author of each submission, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.problem import load
from kernelmark.course.roster import NOBODY, Roster, read
from kernelmark.course.submissions import CourseSubmission, submissions_in
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.unit.test_handins import archive, folder

Made = Callable[[Path, Mapping[str, str | bytes]], Path]
KERNEL = "def twice(x, y): y.copy_(2 * x)\n"
SHEET = """---
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :email: ada@x.edu
    :sid: '0314'
  :created_at: 2026-11-30 22:50:11.123456000 Z
  :history:
  - :id: 3
    :created_at: 2026-11-29 22:50:11.123456000 Z
submission_12:
  :submitters:
  - :name: "Bob O'Neil"
    :sid:
    :email: bob@x.edu
  - :name: Zoë
    :sid: '99'
    :email: zoe@x.edu
"""
STAMPS = ("2026-11-29-10-00-00", "2026-11-30-09-00-00")
GROUPS = ("Group A-Ada_1", "Group A-Anna-Lena_2", "Group B-Bob_3", "Group B-Cyd_4")
TAIL = "_assignsubmission_file/k.py"


def found(place: Path, roster: Roster = NOBODY) -> Mapping[str, CourseSubmission]:
    return {each.author: each for each in submissions_in(place, roster=roster)}


@pytest.mark.parametrize("place", [folder, archive])
@pytest.mark.parametrize(
    ("files", "authors"),
    [
        # Moodle: groups; blind marking; a hyphen that is of no group
        ([f"{name}{TAIL}" for name in GROUPS], {"Ada": "1", "Anna-Lena": "2", "Bob": "3", "Cyd": "4"}),
        ([f"Participant_{n}{TAIL}" for n in (71, 72)], {"Participant-71": "71", "Participant-72": "72"}),
        ([f"Anna-Lena_1{TAIL}", f"Anna-Eva_2{TAIL}", f"Bob_3{TAIL}"], {"Anna-Lena": "1", "Anna-Eva": "2", "Bob": "3"}),
        # Canvas, where each file of a student stands by itself
        (["leeann_LATE_5_61_k.py", "leeann_LATE_5_62_notes.txt", "bob_6_63_k-1.py"], {"leeann": "5", "bob": "6"}),
        # Blackboard: the newest attempt, and the text that it adds
        ([f"HW 1_ada_attempt_{when}{end}" for when in STAMPS for end in (".txt", "_k.py")] + [
            f"HW 1_bob_attempt_{STAMPS[0]}_k.py"], {"ada": "ada", "bob": "bob"}),
        # whoever calls a file like Blackboard is nobody else
        (["eve_5_77_HW_ada_attempt_2026-11-30-09-00-00_k.py", "ada_6_78_k.py"], {"eve": "5", "ada": "6"}),
        # no platform: each file is an author's
        (["ada.py.txt", "bob.PY"], {"ada": "", "bob": ""}),
        # folders around all
        (["a/b/ada/k.py", "a/b/bob/k.py", "a/README.md"], {"ada": "", "bob": ""}),
        ([f"a/b/c/Ada_1{TAIL}"], {"Ada": "1"}),
    ],
)  # fmt: skip
def test_the_layout_names_the_author(place: Made, files: list[str], authors: dict[str, str], tmp_path: Path) -> None:
    submissions = found(place(tmp_path, dict.fromkeys(files, KERNEL)))
    assert {author: each.owner.id for author, each in submissions.items()} == authors
    assert [
        submission.submission().name in ("k.py", "k-1.py", "ada.py", "bob.py", files[0][9:])
        for submission in submissions.values()
    ] == [True] * len(authors)
    if "HW 1" in files[0]:
        assert STAMPS[1] in submissions["ada"].path


@pytest.mark.parametrize("place", [folder, archive])
def test_gradescope_says_who_handed_in_each_folder(place: Made, tmp_path: Path) -> None:
    files = {f"assignment_9_export/submission_{n}/k.py": KERNEL for n in (11, 12, 13)}
    made = place(tmp_path, {"assignment_9_export/submission_metadata.yml": SHEET, **files})
    submissions = found(made)
    assert {author: (each.owner.id, each.owner.name) for author, each in submissions.items()} == {
        "Ada-Lovelace": ("0314", "Ada Lovelace"),
        "Bob-O-Neil": ("bob@x.edu", "Bob O'Neil"),
        "submission_13": ("", "submission_13"),
    }
    bob = submissions["Bob-O-Neil"]
    assert (bob.authors, dict(bob.mates)["Zoe"].id) == (("Bob-O-Neil", "Zoe"), "99"), "a group has one mark"
    (tmp_path / "roster.csv").write_text("author,id,team\nfalcon,0314,\nzed,99,\nbob,bob@x.edu,pair\n")
    submissions = found(made, read(tmp_path / "roster.csv", load(PROBLEMS / "double")))
    assert {author: each.authors for author, each in submissions.items()} == {
        "bob": ("bob",), "falcon": ("falcon",), "submission_13": ("submission_13",),
    }, "the roster has the teams"  # fmt: skip
    (tmp_path / "roster.csv").write_text("author,id\nfalcon,0314\nzed,99\nbob,bob@x.edu\n")
    submissions = found(made, read(tmp_path / "roster.csv", load(PROBLEMS / "double")))
    assert (submissions["bob"].authors, dict(submissions["bob"].mates)["zed"].id) == (("bob", "zed"), "99")


def test_people_of_one_name_in_several_groups_stay_distinct(tmp_path: Path) -> None:
    lines = [f"  - :name: Kim Lee\n    :sid: '{n}'\n" for n in range(4)]
    groups = {f"submission_{n}": "".join(lines[2 * n : 2 * n + 2]) for n in range(2)}
    sheet = "".join(f"{folder}:\n  :submitters:\n{people}" for folder, people in groups.items())
    again = f"submission_2:\n  :submitters:\n{lines[0]}{lines[3]}"
    files = {f"{folder}/k.py": KERNEL for folder in (*groups, "submission_2")}
    submissions = found(folder(tmp_path, {"submission_metadata.yml": sheet + again, **files}))
    assert sorted(name for submission in submissions.values() for name in submission.authors)[:2] == [
        "Kim-Lee-0",
        "Kim-Lee-1",
    ]


def test_a_clone_of_github_classroom_is_its_account_even_if_it_is_empty(tmp_path: Path) -> None:
    names = ("row-sum-ada", "row-sum-adam", "row-sum-bob-x")
    for name in names:
        (tmp_path / "hw" / name / ".git/objects").mkdir(parents=True)
    for name in names[:2]:
        for file in ("k.py", "test.py"):
            (tmp_path / "hw" / name / file).write_text(KERNEL if file == "k.py" else "import k")
    assert {author: each.path.endswith("k.py") for author, each in found(tmp_path / "hw").items()} == {
        "ada": True, "adam": True, "bob-x": False,
    }  # fmt: skip
    (tmp_path / "hw").rename(tmp_path / "row-sum-submissions")
    for name in names[1:]:
        (tmp_path / "row-sum-submissions" / name).rename(tmp_path / name)
    assert [*found(tmp_path / "row-sum-submissions")] == ["ada"], "by the name of the folder"


def test_folders_of_several_authors_are_named_and_not_guessed(tmp_path: Path) -> None:
    files = dict.fromkeys(("week 1/ada/k.py", "week 1/bob/k.py", "week 2/ada/k.py", "week 2/bob/k.py"), KERNEL)
    with pytest.raises(
        UsageError, match=r"week-2 holds several folders with kernels \(ada, bob\), and so do the others"
    ):
        submissions_in(folder(tmp_path, files))
