"""`kernelmark grade PROBLEM HANDINS`: folders and archives as learning platforms make them, with a prepared judge."""

from __future__ import annotations

import csv
import io
import random
import stat
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.errors import SubmissionError, UsageError
from kernelmark.course.submissions import submissions_in
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.teams import Teams
from leaderboard.standings.ranking import rank
from tests.documents import items
from tests.unit.conftest import Answering, Command, Said
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


class Course(NamedTuple):
    """A project with one problem, its command line, and a judge that gives prepared answers."""

    folder: Path
    command: Command
    judge: Answering

    def configure(self, text: str) -> None:
        with (self.folder / "kernelmark.toml").open("a") as settings:
            settings.write(text)

    def grade(self, place: Path, *options: str) -> Said:
        """Grade what was handed in; the marks are in `marks.csv` unless the options name another file."""
        return self.command("grade", "double", str(place), "--csv", "marks.csv", *options)

    def handed_in(self, moments: Iterable[tuple[str, str]]) -> None:
        """Write `in.csv`, when each author handed in."""
        rows = "".join(f"{author},{when}\n" for author, when in moments)
        (self.folder / "in.csv").write_text(f"author,handed_in\n{rows}", encoding="utf-8-sig")

    def marks(self, name: str = "marks.csv") -> list[dict[str, str]]:
        with (self.folder / name).open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))


@pytest.fixture
def course(competition: Path, command: Command, judge: Answering) -> Course:
    return Course(competition, command, judge)


def folder(tmp_path: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = tmp_path / "handins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path / "handins"


def archive(tmp_path: Path, files: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(tmp_path / "handins.zip", "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return tmp_path / "handins.zip"


def archive_of_windows(tmp_path: Path, files: Mapping[str, str | bytes]) -> Path:
    """As some programs there make it, with folders of their own."""
    folders = {name[: name.index("/") + 1]: "" for name in files if "/" in name}
    return archive(tmp_path, {name.replace("/", "\\"): content for name, content in {**folders, **files}.items()})


@pytest.mark.parametrize("place", [folder, archive, archive_of_windows])
@pytest.mark.parametrize("inside", ["", "all of them/"])
def test_each_author_has_one_hand_in(place: Callable[..., Path], inside: str, tmp_path: Path) -> None:
    found = submissions_in(place(tmp_path, {f"{inside}{name}": content for name, content in FILES.items()}))
    assert [each.author for each in found] == ["Ada-Lovelace", "Two", "hopper", "team_1"]
    ada, two, hopper, team = found
    assert (ada.submission().name, ada.submission().language) == ("softmax.py", "py")
    assert hopper.submission().source == KERNEL.encode()
    assert team.path == "team_1.py"
    with pytest.raises(UsageError, match=r"Two handed in 2 kernels \(Two/a.py, Two/deep/b.cu\); leave one"):
        two.submission()


def test_people_whose_names_are_reduced_to_one_are_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("Jorg/k.py", "Jo\u0308rg/k.py", "J\xf6rg/rows.h", "Ann Lee.py", "Ann_Lee.py")
    found = submissions_in(folder(tmp_path, dict.fromkeys(names, KERNEL)))
    assert [(each.author, len(each.files)) for each in found] == [
        ("Ann-Lee", 1), ("Ann_Lee", 1), ("Jorg", 1), ("Jorg-0550ff70", 2),
    ]  # fmt: skip
    assert "note: J\xf6rg is graded as Jorg-0550ff70, since Jorg is somebody else\n" in capsys.readouterr().err


@pytest.mark.parametrize("is_archive", [False, True])
def test_a_link_is_named_and_not_followed(is_archive: bool, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.py"
    target.write_text(KERNEL)
    files = {"ada/k.py": "import rows\n" + KERNEL, "bob/notes.txt": "see k.py"}
    place, links = (archive if is_archive else folder)(tmp_path, files), ("ada/rows.py", "bob/k.py", "cyd/k.py", "l.py")
    for name in links:
        if is_archive:
            link = zipfile.ZipInfo(name)
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            with zipfile.ZipFile(place, "a") as made:
                made.writestr(link, str(target))
        else:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).symlink_to(target)
    ada, bob, cyd = submissions_in(place)
    assert ada.submission().beside == ()
    with pytest.raises(
        SubmissionError, match=r"bob: no kernel \(found .*k\.py.*\); links \(k\.py\) are not followed: hand in the file"
    ):
        bob.submission()
    with pytest.raises(
        SubmissionError, match=r"cyd: no kernel \(found k\.py\); links \(k\.py\) are not followed: hand in the file"
    ):
        cyd.submission()
    if not is_archive:
        with pytest.raises(UsageError, match=r"cyd holds no kernel, but links, which are not followed \(k\.py\)"):
            submissions_in(place / "cyd")


@pytest.mark.parametrize(
    ("files", "authors"),
    [
        (("Ada_1_assignsubmission_file/k.py", "Ada_1_assignsubmission_file/report.pdf"), ["Ada"]),
        (("Ada_1_assignsubmission_file/a.py", "Ada_1_assignsubmission_file/b.py"), ["Ada"]),
        (("all/Ada_1_assignsubmission_file/k.py", "all/Bob_2_assignsubmission_file/k.txt"), ["Ada", "Bob"]),
        (("notes.txt", "all/ada/k.py", "all/bob/k.py"), ["ada", "bob"]),
        (("ada/k.py", "ada/notes.txt"), ["ada"]),
        (("ada/k.py", "bob.py"), ["ada", "bob"]),
    ],
)
def test_a_common_folder_is_not_an_authors_folder(files: tuple[str, ...], authors: list[str], tmp_path: Path) -> None:
    assert [each.author for each in submissions_in(folder(tmp_path, dict.fromkeys(files, KERNEL)))] == authors


@pytest.mark.parametrize("place", [folder, archive])
def test_names_and_ids_are_those_of_the_platform(place: Callable[..., Path], tmp_path: Path) -> None:
    names = {
        "李雷_20109_assignsubmission_file/k.py": ("20109", "20109", "李雷"),
        "Иван Петров_7_assignsubmission_file/k.py": ("7", "7", "Иван Петров"),
        "王芳/k.py": ("author-8ac9540b", "", "王芳"),
        "Kim Lee_20101_assignsubmission_file/k.py": ("Kim-Lee-20101", "20101", "Kim Lee"),
        "Kim Lee_20102_assignsubmission_file_k.py": ("Kim-Lee-20102", "20102", "Kim Lee"),
        "Zoë_1_2_x_assignsubmission_file/k.py": ("Zoe", "1", "Zoë"),
        "bob_LATE_3_44_k.py": ("bob", "3", "bob"),
        "two_words.py": ("two_words", "", "two_words"),
    }
    found = submissions_in(place(tmp_path, dict.fromkeys(names, KERNEL)))
    assert {each.path: (each.author, each.owner.id, each.owner.name) for each in found} == names
    assert [each.author for each in found if each.marked_late] == ["bob"]
    assert {each.submission().author for each in found} == {author for author, _, _ in names.values()}


@pytest.mark.parametrize("place", [folder, archive, archive_of_windows])
@pytest.mark.parametrize("inside", ["", "all of them/"])
def test_an_empty_folder_is_a_hand_in_without_a_kernel(place: Callable[..., Path], inside: str, tmp_path: Path) -> None:
    files = {f"{inside}{name}": KERNEL for name in ("ada/k.py", "cyd/k.py", "ada/.keep", "bob/.keep")}
    folders = [f"{inside}{name}" for name in ("ada", "ada/empty", "bob", "bob/j.py")]
    for each in folders:
        (tmp_path / "handins" / each).mkdir(parents=True, exist_ok=True)
    made = place(tmp_path, files)
    if made.is_file():
        with zipfile.ZipFile(made, "a") as zipped:
            for each in folders:
                zipped.mkdir(each)
    ada, bob, cyd = submissions_in(made)
    assert [each.submission().author for each in (ada, cyd)] == ["ada", "cyd"]
    with pytest.raises(SubmissionError, match=r"bob: no kernel \(its folder is empty\); its name must end in"):
        bob.submission()


def test_an_author_without_a_kernel_has_a_row(course: Course) -> None:
    course.configure('[teams]\nfast = ["gil", "hal"]\n')
    files = {
        "Ada_1_assignsubmission_file/k.py": KERNEL,
        "Ada_1_assignsubmission_onlinetext/onlinetext.html": "see the file",
        "Bob_2_assignsubmission_file/kernel.txt": KERNEL,
        "cyd_3_55_kernel.txt": KERNEL,
        "gil/k.py": KERNEL,
        "hal_20_assignsubmission_file/notes.md": "gil has it",
        "grades.csv": "the teacher's own",
    }
    course.judge(accepted(author="Ada"), accepted(author="gil"))
    result = course.grade(folder(course.folder, files), "--no-record")
    assert result.code == 2
    assert [(row["author"], row["id"], row["outcome"], row["message"].partition(";")[0]) for row in course.marks()] == [
        ("Ada", "1", "accepted", ""),
        ("Bob", "2", "not graded", "Bob: no kernel (found kernel.txt)"),
        ("cyd", "3", "not graded", "cyd: no kernel (found cyd_3_55_kernel.txt)"),
        ("gil", "", "accepted", ""),
        ("hal", "20", "accepted", ""),
    ]
    assert "note: passed over what is not a kernel: grades.csv, notes.md\n" in result.err
    assert result.err.splitlines()[-2:] == ["4 submissions: 2 accepted, 2 not graded", "wrote marks.csv"]


def test_a_team_has_one_hand_in_whose_marks_are_those_of_all_members(course: Course) -> None:
    course.configure('[teams]\nfast = ["ada", "bob"]\nslow = ["cyd", "dan"]\nmany = ["eve", "fay", "gil"]\n')
    place = folder(course.folder, {f"{name}/k.py": KERNEL for name in ("bob", "slow", "eve", "gil", "zed")})
    course.judge(accepted(), accepted(), accepted())
    result = course.grade(place, "--feedback", "feedback", "--no-record")
    assert result.code == 2, result.err
    rows = course.marks()
    assert [(row["author"], row["team"], row["file"], row["outcome"]) for row in rows] == [
        ("ada", "fast", "bob/k.py", "accepted"),
        ("bob", "fast", "bob/k.py", "accepted"),
        ("eve", "many", "eve/k.py", "not graded"),
        ("gil", "many", "gil/k.py", "not graded"),
        ("cyd", "slow", "slow/k.py", "accepted"),
        ("dan", "slow", "slow/k.py", "accepted"),
        ("zed", "", "zed/k.py", "accepted"),
    ]
    assert rows[2]["message"] == "eve handed in, and so did gil of the same team; leave one submission"
    assert sorted(path.stem for path in (course.folder / "feedback").iterdir()) == sorted(row["author"] for row in rows)


@pytest.mark.parametrize(
    ("name", "full_name"),
    [
        ("Kim Lee_20101_assignsubmission_file/k.py", "Kim Lee"),
        ("李雷_20101_assignsubmission_file_k.py", "李雷"),
        ("Kim Lee_20101_assignsubmission_onlinetext/onlinetext.html", "Kim Lee"),
        (f"{'é' * 90}_20101_assignsubmission_file/k.py", "é" * 90),
        (f"{'é' * 115}_20101_assignsubmission_file_k.py", None),
        ("Kim\x1b[2J_20101_assignsubmission_file/k.py", None),
        ("kim_20101_92653_k.py", None),
        ("20101.py", None),
    ],
)
def test_moodle_takes_feedback_back_by_the_names_that_it_made(name: str, full_name: str | None, tmp_path: Path) -> None:
    """It splits a file's name at the first four underscores (`importziplib.php`): name, id, kind, plugin, the file."""
    first, *_ = submissions_in(archive(tmp_path, {name: KERNEL, "zed.py": KERNEL}))
    file = first.owner.feedback_file
    if full_name is None:
        assert file == ""
    else:
        assert file.split("_", 4) == [full_name, "20101", "assignfeedback", "file", "feedback.txt"]
        (tmp_path / file).write_text("right")


@pytest.mark.parametrize(
    ("name", "members", "author"),
    [
        ("Kim Lee_7_assignsubmission_file/k.py", ["ada", "bob"], "Kim-Lee-7"),
        ("Kim Lee_7_assignsubmission_file/note.txt", ["ada", "bob"], "Kim-Lee-7"),
        ("Kim-Lee_7_8_k.py", ["ada", "bob"], "Kim-Lee-7"),
        ("Kim Lee_7_assignsubmission_file/k.py", ["ada", "Kim-Lee"], "Kim-Lee"),
        ("Kim-Lee/k.py", ["ada", "bob"], "Kim-Lee"),  # may be the team's
    ],
)
def test_an_author_named_like_a_team_is_no_team(name: str, members: list[str], author: str, tmp_path: Path) -> None:
    place, teams = archive(tmp_path, {name: KERNEL, "zed.py": KERNEL}), Teams({"Kim-Lee": tuple(members)})
    found = {each.author: each.team and each.team.name for each in submissions_in(place, teams)}
    assert found == {author: "Kim-Lee" if author == "Kim-Lee" else None, "zed": None}


MOODLE = "_assignsubmission_file"


@pytest.mark.parametrize(
    ("files", "authors"),
    [
        # called as Ada's id makes her name, where another Ada handed in
        (
            [f"Ada_31415{MOODLE}/k.py", f"Ada_2{MOODLE}/k.py", f"Ada-31415_99{MOODLE}/k.py"],
            {"31415": "Ada-31415", "2": "Ada-2", "99": "Ada-31415-e52b0b60"},
        ),
        (["ada_31415_7_k.py", "ada_2_8_k.py", "ada-31415.py"], {"31415": "ada-31415", "2": "ada-2", "": None}),
        # where she is the only one, nobody is in anybody's way
        ([f"Ada_31415{MOODLE}/k.py", f"Ada-31415_99{MOODLE}/k.py"], {"31415": "Ada", "99": "Ada-31415"}),
        # called as somebody's id, whose name has another script
        ([f"李雷_20109{MOODLE}/k.py", f"20109_5{MOODLE}/k.py"], {"20109": "20109", "5": "20109-5"}),
        ([f"李雷_20109{MOODLE}/k.py", "20109.py"], {"20109": "20109", "": None}),
        # called as the platform appends an id
        (
            [f"Ada_31415{MOODLE}/k.py", f"Ada_31415{MOODLE}_99{MOODLE}/k.py"],
            {"31415": "Ada", "99": "Ada_31415_assignsubmission_file"},
        ),
        # a file that is called as the platform calls Ada's
        ([f"Ada_31415{MOODLE}/k.py", f"eve_5_77_31415{MOODLE}.py"], {"31415": "Ada", "": None}),
    ],
)
def test_ids_come_from_the_platform_and_names_stay_distinct(
    files: list[str], authors: dict[str, str | None], tmp_path: Path
) -> None:
    found = {each.owner.id: each for each in submissions_in(archive(tmp_path, dict.fromkeys(files, KERNEL)))}
    assert len({each.author for each in found.values()}) == len(files) == len(found)
    for own, author in authors.items():
        if author:
            assert found[own].author == found[own].submission().author == author, "each other one is graded as always"


def test_a_file_with_the_ids_of_two_is_refused_and_no_other(tmp_path: Path) -> None:
    files = (f"Ada_31415{MOODLE}_k.py", f"Eve_5{MOODLE}_Ada_31415{MOODLE}_k.py", f"Zoe_6{MOODLE}_Zoe_6{MOODLE}_k.py")
    found = {each.path: each for each in submissions_in(archive(tmp_path, dict.fromkeys(files, KERNEL)))}
    ada, eve, zoe = (found[path] for path in files)
    assert [(each.author, each.submission().author) for each in (ada, zoe)] == [("Ada", "Ada"), ("Zoe", "Zoe")]
    with pytest.raises(SubmissionError, match="holds the ids 5 and 31415; hand in a file whose own name has no id"):
        eve.submission()


def test_an_invalid_hand_in_is_reported_and_read_within_limits(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    for place, why in (
        (tmp_path / "text.zip", "is not a zip archive"),
        (tmp_path / "missing", "No such file"),
        (folder(tmp_path, {"notes.txt": ""}), r"holds no kernel; its files end in .py, .cu or .cpp"),
    ):
        with pytest.raises(UsageError, match=why):
            submissions_in(place)

    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("ada.py", b" " * (64 << 20))
    [bomb] = submissions_in(tmp_path / "bomb.zip")
    with pytest.raises(UsageError, match=r"ada\.py is larger than 1,048,576 bytes"):
        bomb.submission()


def test_marks_and_feedback_are_written(course: Course) -> None:
    place = folder(course.folder, {**FILES, "zed.py": KERNEL})
    fake = course.judge(accepted(), failed(message="=cmd|' /C calc'!A0"), failed(message="@wrong"), accepted())
    result = course.grade(place, "--csv", "out/marks.csv", "--feedback", "out/feedback", "--no-record", "--quick")
    assert result.code == 2, result.err  # Two handed in two
    assert fake.setup.effort == "quick"
    rows = course.marks("out/marks.csv")
    assert [(row["author"], row["outcome"]) for row in rows] == [
        ("Ada-Lovelace", "accepted"),
        ("Two", "not graded"),
        ("hopper", "wrong answer"),
        ("team_1", "wrong answer"),
        ("zed", "accepted"),
    ]
    assert result.err.splitlines()[-2:] == [
        "5 submissions: 2 accepted, 2 wrong answer, 1 not graded",
        "wrote out/marks.csv and 5 files in out/feedback/",
    ]
    assert rows[0]["time_ns"] == "57300"
    assert rows[2]["message"] == "'=cmd|' /C calc'!A0", "no spreadsheet runs it"
    feedback = {path.name: path.read_text() for path in (course.folder / "out/feedback").iterdir()}
    ada = "Ada Lovelace_31415_assignfeedback_file_feedback.txt"
    assert sorted(feedback) == [ada, *(f"{row['author']}.txt" for row in rows[1:])]
    assert "  run " not in result.out + feedback["zed.txt"], "nothing was recorded"
    assert "handed in 2 kernels" in feedback["Two.txt"]
    assert feedback["zed.txt"].startswith("zed.py\naccepted: 57.3 µs [57.0, 57.6] a call\n")


NOW = datetime.now(UTC).replace(microsecond=0)
DEADLINE = NOW - timedelta(days=5)
SCHEDULE = f'deadline = {DEADLINE.isoformat()}\ngrace = "1h"\nlate = {{ days = 2, penalty_per_day = 0.1 }}\n'


@pytest.fixture
def closed(course: Course) -> Path:
    """What four students handed in; the problem of their course closed three days ago."""
    toml = course.folder / "problems/double/problem.toml"
    toml.write_text(SCHEDULE + toml.read_text())
    return folder(course.folder, {f"{name}_31415_92653_k.py": KERNEL for name in ("ada", "bob", "dan", "eve_LATE")})


def test_the_time_of_submission_counts_not_the_time_of_grading(closed: Path, course: Course) -> None:
    moments = {"ada": -timedelta(hours=1), "bob": timedelta(hours=1), "eve": timedelta(hours=30), "dan": timedelta(3)}
    course.handed_in((name, (DEADLINE + after).isoformat()) for name, after in moments.items())
    course.judge(*(accepted(author=name, run=str(number) * 16) for number, name in enumerate(("ada", "bob", "eve"), 1)))
    result = course.grade(closed, "--handed-in", "in.csv", "--feedback", "feedback")
    assert result.code == 2, "dan's was too late"
    assert [(row["author"], row["outcome"], row["late_days"], row["factor"]) for row in course.marks()] == [
        ("ada", "accepted", "0", "1"),
        ("bob", "accepted", "0", "1"),
        ("dan", "not graded", "3", ""),
        ("eve", "accepted", "2", "0.8"),
    ]
    [table] = rank(JsonlLedger(course.folder / "leaderboard/results/double.jsonl"))
    assert sorted(row.author for row in table.rows) == ["ada", "bob"]
    on_time = "graded after the deadline, but handed in on time, 2"
    assert all(row.moderation[0].reason.startswith(on_time) for row in table.rows)
    [late] = table.set_aside
    assert (late.author, late.state, late.moderation[0].actor) == ("eve", "late", "late policy")
    eve = (course.folder / "feedback/eve.txt").read_text()
    assert "2 days late, factor 0.8" in eve
    assert ("(run 3333" in result.out, "run         3333" in eve) == (True, True)
    why, when = "not graded: it was handed in too late", f"{DEADLINE + moments['dan']:%Y-%m-%d %H:%M} UTC, 3 days late"
    assert (course.folder / "feedback/dan.txt").read_text() == f"dan_31415_92653_k.py\n{why}\n  handed in   {when}\n"
    course.judge(*(accepted(author=name) for name in ("ada", "bob", "dan", "eve") * 2))
    course.grade(closed, "--handed-in", "marks.csv", "--csv", "again.csv", "--no-record")
    assert [row["late_days"] for row in course.marks("again.csv")] == ["0", "0", "3", "2"], (
        "a table of marks is one too"
    )
    unknown = course.grade(closed, "--no-record")
    assert "; --handed-in says how late each one was\n" in unknown.err


def test_a_table_of_moments_names_authors_in_any_of_their_forms(closed: Path, course: Course) -> None:
    kims, others = ("Kim Lee_1", "Kim Lee_2", "Kim Lee_3"), ("李雷_20109", "Иван_20110", "王芳_20111", "20110_5")
    place = folder(course.folder, {f"more/{name}{MOODLE}/k.py": KERNEL for name in (*kims, *others)}) / "more"
    names = (f"Kim Lee_1{MOODLE}", "Kim-Lee-2", "李雷", "20110", f"王芳_20111{MOODLE}")
    late = (DEADLINE + timedelta(hours=30)).isoformat()
    course.handed_in([*((name, late) for name in names), ("Kim Lee", DEADLINE.isoformat())])
    course.judge(*(accepted(run=str(number) * 16) for number in range(5)))
    course.grade(place, "--handed-in", "in.csv", "--no-record")
    assert {row["author"]: row["late_days"] for row in course.marks()} == {
        **dict.fromkeys(("Kim-Lee-1", "Kim-Lee-2", "20109", "20110", "20111"), "2"),
        "Kim-Lee-3": "",  # a name that three have says of none when
        "20110-5": "",  # whose name is another's id
    }


@pytest.mark.parametrize(
    ("when", "table", "line"),
    [
        (None, "", "problem double: its deadline has passed (closed since "),
        ("2999-01-01T00:00:00+00:00", "", "is in the future; say when it was handed in"),
        ("2026-01-32T00:00:00", "", "'2026-01-32T00:00:00' is not a date and time with its offset; write it like"),
        ("0001-01-01T00:00:00Z", "", "'0001-01-01T00:00:00Z' is not a date and time with its offset"),
        ("x" * 5000, "", "is not a date and time with its offset"),
        ("in.csv", "author,when\n", "in.csv has no column 'handed_in'; it needs author and handed_in"),
        ("in.csv", "author,handed_in\nada,soon\n", "in.csv:2: 'soon' is not a date and time"),
        ("in.csv", "author,handed_in\nada\n", "in.csv:2 has no moment"),
        ("in.csv", "author,handed_in\na b,2020-01-01T00:00Z\na-b,2020-01-01T00:00Z\n", "in.csv:3 names a-b again"),
        ("in.csv", b"\xff\xfe", "in.csv cannot be read as CSV"),
    ],
)
def test_bad_times_are_refused(closed: Path, course: Course, when: str | None, table: str | bytes, line: str) -> None:
    (course.folder / "in.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    result = course.grade(closed, *(("--handed-in", when) if when else ()))
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert line in result.err
    assert not (course.folder / "leaderboard").exists()


SHEETS = {
    "Moodle": "Identifier;Full name;Status;Last modified (submission);Grade\r\n"
    "Participant 31415;Ada;Submitted for grading;{first:%A, %d %B %Y, %I:%M %p};\r\n"
    "Participant 7;Bob;Submitted for grading - late;{second:%A, %B %d, %Y, %I:%M %p};\r\n"
    "Participant 8;Cyd;No submission;-;\r\n",
    "Gradescope": "First Name,Last Name,SID,Email,Status,Submission Time,Lateness (H:M:S)\n"
    "Ada,L,31415,ada@x.org,Graded,{first:%Y-%m-%d %H:%M:%S} +0200,00:00:00\n"
    "Bob,B,,7,Graded,{second:%Y-%m-%d %H:%M:%S} +0200,30:00:00\nCyd,C,8,,Missing,,\n",
    "Canvas": "user_id\tuser name\tsubmitted_at\n31415\tL, Ada\t{first:%Y-%m-%dT%H:%M:%S}\n"
    "7\tB, Bob\t{second:%Y-%m-%d %H:%M:%S}\n8\tC, Cyd\t\n",
}


@pytest.mark.parametrize("platform", SHEETS)
def test_times_of_submission_are_read_from_a_platforms_sheet(closed: Path, course: Course, platform: str) -> None:
    toml = course.folder / "problems/double/problem.toml"
    zone = timezone(timedelta(hours=2))
    deadline = DEADLINE.astimezone(zone)
    toml.write_text(toml.read_text().replace(DEADLINE.isoformat(), deadline.isoformat()))
    first, second = deadline - timedelta(minutes=5), deadline + timedelta(hours=30)
    sheet = SHEETS[platform].format(first=first, second=second)
    (course.folder / "sheet.csv").write_text(sheet, encoding="utf-8-sig", newline="")
    place = folder(course.folder, {f"more/{name}{MOODLE}/k.py": KERNEL for name in ("Ada_31415", "Bob_7", "Cyd_8")})
    course.judge(accepted(author="Ada"), accepted(author="Bob", run="1" * 16))
    result = course.grade(place / "more", "--handed-in", "sheet.csv")
    assert [(row["author"], row["outcome"], row["factor"]) for row in course.marks()] == [
        ("Ada", "accepted", "1"),
        ("Bob", "accepted", "0.8"),
        ("Cyd", "not graded", ""),
    ]
    assert "sheet.csv has no moment for Cyd; add a row, or grade without --handed-in" in course.marks()[2]["message"]
    note = "note: sheet.csv has moments without an offset; they count as UTC+02:00, as the deadline's"
    assert (note in result.err) == (platform != "Gradescope")


def test_one_time_for_all_does_not_excuse_marked_late_files(closed: Path, course: Course) -> None:
    course.judge(*(accepted(author=name, run=str(number) * 16) for number, name in enumerate(("ada", "bob", "dan"), 1)))
    result = course.grade(closed, "--handed-in", DEADLINE.isoformat())
    assert result.code == 2
    late = "eve_LATE_31415_92653_k.py is marked LATE in its name"
    assert f"{late}, but --handed-in says that all came on time" in result.out
    [table] = rank(JsonlLedger(course.folder / "leaderboard/results/double.jsonl"))
    assert sorted(row.author for row in table.rows) == ["ada", "bob", "dan"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "its deadline has passed (closed since "),
        (("--handed-in", (DEADLINE + timedelta(days=3)).isoformat()), "takes no more submissions, closed since "),
        (("--handed-in", "in.csv"), "takes no more submissions, closed since "),
        (("--late", "o" * 101), "is not a valid name"),
    ],
)
def test_an_error_for_everyone_is_printed_once(
    closed: Path, course: Course, arguments: tuple[str, ...], why: str
) -> None:
    late = (DEADLINE + timedelta(days=4)).isoformat()
    course.handed_in((name, late) for name in ("ada", "bob", "dan", "eve"))
    (course.folder / "marks.csv").write_text("of the last time\n")
    result = course.grade(closed, "--feedback", "feedback", *arguments)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert why in result.err
    if "takes no more" in why or "passed" in why:
        assert "--late NAME" in result.err
        assert "--no-record" in result.err
    assert (course.folder / "marks.csv").read_text() == "of the last time\n"
    assert not (course.folder / "feedback").exists()


def test_a_missing_baseline_is_said_once(course: Course) -> None:
    course.configure('baselines = ["gone"]\n')
    result = course.grade(folder(course.folder, {"ada/k.py": KERNEL, "bob/k.py": KERNEL}))
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert "baseline gone is not in " in result.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("double",), "needs either --changed BASE or PROBLEM HANDINS"),
        (("double", "handins", "--changed", "main"), "needs either"),
        (
            ("--changed", "main", "--csv", "marks.csv"),
            "--csv, --feedback, --gradebook, --gradescope, --file, --list, --roster and --handed-in go with HANDINS",
        ),
        (("--changed", "main", "--handed-in", "2020-01-01T00:00Z"), "--handed-in go with HANDINS"),
        (("--changed", "main", "--list"), "needs either --changed BASE or PROBLEM HANDINS"),
        (("nothing", "handins"), "no such problem"),
        (("handins", "double"), "PROBLEM comes first, then HANDINS; write `kernelmark grade double handins`"),
    ],
)
def test_either_a_branch_or_hand_ins_must_be_named(arguments: tuple[str, ...], why: str, course: Course) -> None:
    folder(course.folder, {"ada.py": KERNEL})
    result = course.command("grade", *arguments)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert why in result.err


def zipped(files: dict[str, str | bytes]) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as inner:
        for name, content in files.items():
            inner.writestr(name, content)
    return made.getvalue()


OTHER = "def other(): pass\n"
CPP = '#include "tiles.h"\nextern "C" void twice(const float *x, float *y) {}\n'
ONE_OF_TWO = {"a.py": KERNEL, "b.py": KERNEL}


@pytest.mark.parametrize("place", [folder, archive])
@pytest.mark.parametrize(
    ("files", "options", "name", "beside", "remark"),
    [
        ({"kernel.py": KERNEL, "test.py": "import kernel\n"}, (), "kernel.py", [], ""),
        ({"KERNEL.PY": KERNEL}, (), "KERNEL.py", [], ""),
        ({"k.py.txt": KERNEL}, (), "k.py", [], "k.py.txt counts as k.py; hand it in without .txt"),
        ({"k.py": KERNEL, "old.py.TXT": KERNEL}, (), "k.py", [], ""),
        ({"k.py": KERNEL.encode("utf-16")}, (), "k.py", [], "k.py is UTF-16; save it as UTF-8"),
        ({"it.zip": zipped({"in/k.py": KERNEL, "__MACOSX/._k.py": "", "in/venv/x.py": KERNEL})}, (), "k.py", [], ""),
        ({"it.zip": zipped({"in\\k.py": KERNEL, "in\\more\\": "", "__MACOSX\\._k.py": ""})}, (), "k.py", [], ""),
        ({"k.py": KERNEL, "it.zip": zipped({"k.py": KERNEL})}, (), "k.py", [], ""),
        ({"k.cpp": CPP, "tiles.h": '#include <inner.h>\n#include "no.h"', "inner.h": "", "unused.h": ""}, (), "k.cpp",
         ["inner.h", "tiles.h"], ""),
        ({"k.py": f"import tiling, math\n{KERNEL}", "tiling.py": OTHER, "deep/math.py": ""}, (), "k.py",
         ["tiling.py"], ""),
        (ONE_OF_TWO, ("--file", "B.py"), "b.py", [], ""),
        ({"mine.py": KERNEL, "notes.txt": ""}, ("--file", "k.py"), "mine.py", [],
         "there is no k.py, so mine.py counts"),
        ({"x/k.py": OTHER, "y/k.py": KERNEL}, ("--file", "k.py"), "k.py", [], ""),
    ],
)  # fmt: skip
def test_the_kernel_and_the_files_it_uses_are_found(
    course: Course, place: Callable[..., Path], files: dict[str, str | bytes],
    options: tuple[str, ...], name: str, beside: list[str], remark: str,
) -> None:  # fmt: skip
    made = place(course.folder, {f"{top}/{file}": held for top in ("ada", "bob") for file, held in files.items()})
    fake = course.judge(accepted(), accepted())
    result = course.grade(made, "--feedback", "feedback", "--no-record", *options)
    assert result.code == 0, result.out
    _, submission, *_ = fake.asked[0]
    assert (submission.name, [other for other, _ in submission.beside]) == (name, beside)
    source = files.get(name, KERNEL)
    assert submission.source.decode() == (source if isinstance(source, str) else KERNEL)
    assert [row["message"] for row in course.marks()] == [remark] * 2
    assert (f"note: ada: {remark}\n" in result.err) == bool(remark)
    assert remark in (course.folder / "feedback/ada.txt").read_text().replace("\n              ", " ")


@pytest.mark.parametrize("place", [folder, archive])
@pytest.mark.parametrize(
    ("files", "why"),
    [
        (ONE_OF_TWO, "ada handed in 2 kernels (ada/a.py, ada/b.py); leave one"),
        ({"a.py": OTHER, "b.py": OTHER}, "ada handed in 2 kernels (ada/a.py, ada/b.py)"),
        ({f"{n}.py": KERNEL for n in range(99)}, "handed in 99 kernels"),
        ({"k.py": "\r\n"}, "ada: k.py is empty; hand in the file"),
        ({"k.ipynb": "{}"}, "a notebook cannot be graded: export it with `jupyter nbconvert --to script k.ipynb`"),
        ({"k.py": b"\n# \xdcbung\n"}, "k.py holds the byte 0xdc in line 2, which is not UTF-8; save it as UTF-8: in "),
        ({"k.py": b"\xff\xfe\x00"}, "which is not UTF-16"),
        ({"k.zip": "no archive"}, "(found k.zip); the archive is damaged, too large or without a kernel"),
        ({"k.zip": zipped({"k.zip": zipped({"k.py": KERNEL})})}, "damaged, too large or without a kernel"),
        ({"k.zip": zipped({"k.py": KERNEL, "big": bytes(9 << 20)})[:-9]}, "the archive is damaged"),
        ({"k.zip": zipped({"k.py": " " * (2 << 20)})}, "k.py is larger than 1,048,576 bytes"),
        ({"k.py": f"import tiling, torch\n{KERNEL}", "torch.py": ""}, "torch.py: would be imported in place of the"),
    ],
)  # fmt: skip
def test_a_hand_in_that_cannot_be_graded_gets_a_remedy(
    course: Course, place: Callable[..., Path], files: dict[str, str | bytes], why: str
) -> None:
    made = place(course.folder, {"bob/k.py": KERNEL, **{f"ada/{name}": held for name, held in files.items()}})
    course.judge(accepted())
    assert course.grade(made, "--no-record").code == 2
    ada, bob = course.marks()
    assert (ada["outcome"], bob["outcome"]) == ("not graded", "accepted")
    assert why in ada["message"]


def test_of_an_archive_within_no_more_is_opened_than_one_author_may_have(course: Course) -> None:
    bombs = {f"ada/{n}.zip": zipped({"x": ""}) for n in range(4)}
    huge = {"bob/k.zip": zipped({"k.py": KERNEL, "x": random.Random(0).randbytes(9 << 20)})}
    found = submissions_in(folder(course.folder, {**bombs, "ada/9.zip": zipped({"k.py": KERNEL}), **huge}))
    for each in found:
        with pytest.raises(SubmissionError, match="without a kernel: hand in the files"):
            each.submission()


def test_list_shows_who_submitted_what_and_grades_nothing(closed: Path, course: Course) -> None:
    course.configure('[teams]\nfast = ["ada", "zoe"]\n')
    course.handed_in([("ada", (DEADLINE + timedelta(hours=30)).isoformat()), ("bob", DEADLINE.isoformat())])
    (closed / "ada_31415_92653_k.py").rename(closed / "ada_31415_92653_K.cpp")
    (closed / "ada_31415_92653_K.cpp").write_text(CPP)
    folder(course.folder, {"ada_31415_92654_tiles.h": "", "kim_5_6_k.ipynb": "{}"})
    fake = course.judge()
    result = course.command("grade", "double", str(closed), "--list", "--handed-in", "in.csv", "--format", "json")
    found = {one["author"]: one for one in items(result.out)}
    assert (result.code, fake.asked, sorted(found)) == (0, [], ["ada", "bob", "dan", "eve", "kim"])
    assert found["ada"] == {
        "author": "ada", "id": "31415", "name": "ada", "team": "fast", "file": "ada_31415_92653_K.cpp",
        "beside": ["tiles.h"], "handed_in": (DEADLINE + timedelta(hours=30)).isoformat(), "late_days": 2,
        "gradable": True, "note": "",
    }  # fmt: skip
    assert (found["dan"]["handed_in"], found["kim"]["gradable"]) == ("", False)
    assert "a notebook cannot be graded" in found["kim"]["note"]
    shown = course.command("grade", "double", str(closed), "--list", "--handed-in", "in.csv").out
    assert shown.splitlines()[0].split() == ["author", "id", "name", "kernel", "handed", "in", "note"]
    assert "K.cpp with tiles.h" in shown
    unknown = course.command("grade", "double", str(closed), "--list", "--format", "json").out
    assert {one["handed_in"] for one in items(unknown)} == {""}
    assert shown.splitlines()[-1] == "5 submissions, 1 of which cannot be graded"
    folder(course.folder, {f"{'n' * 99}end_7_8_k.py": KERNEL})
    [row] = [
        line for line in course.command("grade", "double", str(closed), "--list").out.splitlines() if "end" in line
    ]
    assert f" {'n' * 31}…nnnnnend " in row, "one long name does not push all columns out of sight"
    assert not (course.folder / "leaderboard").exists()


def test_the_problem_names_the_file_and_the_option_goes_before_it(course: Course) -> None:
    toml = course.folder / "problems/double/problem.toml"
    toml.write_text('submission = { file = "a.py" }\n' + toml.read_text())
    place = folder(course.folder, {f"{top}/{name}": KERNEL for top in ("ada", "bob") for name in ("a.py", "b.py")})
    for name, given in (("a.py", ()), ("b.py", ("--file", "b.py"))):
        fake = course.judge(accepted(), accepted())
        assert course.grade(place, "--no-record", *given).code == 0
        assert [submission.name for _, submission, *_ in fake.asked] == [name] * 2
    result = course.grade(place, "--file", "a.txt")
    assert (result.code, "unknown language '.txt'" in result.err) == (2, True)
