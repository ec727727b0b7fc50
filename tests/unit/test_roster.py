"""`kernelmark grade PROBLEM HANDINS --roster FILE`: everyone in a course, with a prepared judge."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rank
from tests.documents import items
from tests.unit.conftest import Answering, Command, Said
from tests.verdicts import accepted

KERNEL = "def twice(x, y): y.copy_(2 * x)\n"
MOODLE = "_assignsubmission_file/k.py"
ROSTER = """Full name;ID;Author;Team
Ada Lovelace;31415;falcon;
Bob;7;;quick
Zoe;8;;quick
Kim Lee;20101;;
Kim Lee;20102;Kim-2;
=Eve;9;;
"""


def hand_in(project: Path, *names: str) -> None:
    for name in names:
        (file := project / "handins" / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(KERNEL)


def graded(command: Command, *options: str, roster: str = ROSTER) -> Said:
    Path("roster.csv").write_text(roster, encoding="utf-8-sig")
    return command("grade", "double", "handins", "--roster", "roster.csv", *options)


def marks() -> Mapping[str, dict[str, str]]:
    with Path("marks.csv").open(newline="", encoding="utf-8-sig") as file:
        return {row["author"]: row for row in csv.DictReader(file)}


def test_everyone_of_the_roster_has_a_row_with_the_id(competition: Path, command: Command, judge: Answering) -> None:
    hand_in(
        competition, "ada lovelace/k.py", "Bob/k.py", f"Kim Lee_20102{MOODLE}", f"Guest_5{MOODLE}", "falcon_66_7_k.py"
    )
    judge(*(accepted() for _ in range(5)))
    result = graded(command, "--no-record", "--csv", "marks.csv", "--feedback", "feedback")
    assert result.code == 0, result.out + result.err
    assert {author: (row["id"], row["name"], row["team"], row["outcome"]) for author, row in marks().items()} == {
        "falcon": ("31415", "Ada Lovelace", "", "accepted"),
        "Bob": ("7", "Bob", "quick", "accepted"),
        "Zoe": ("8", "Zoe", "quick", "accepted"),
        "Kim-2": ("20102", "Kim Lee", "", "accepted"),
        "Guest": ("5", "Guest", "", "accepted"),
        "falcon-66": ("66", "falcon", "", "accepted"),
        "Kim-Lee-20101": ("20101", "Kim Lee", "", "not graded"),
        "Eve": ("9", "'=Eve", "", "not graded"),
    }
    assert marks()["Eve"]["message"] == "handed in nothing"
    assert (competition / "feedback/Eve.txt").read_text() == "not graded: handed in nothing\n"
    assert "note: 2 people of the roster handed in nothing\n" in result.err
    listed = items(graded(command, "--list", "--format", "json").out)
    assert {one["author"] for one in listed if one["note"] == "handed in nothing"} == {"Kim-Lee-20101", "Eve"}


def test_a_name_does_not_take_another_ids_hand_in(competition: Path, command: Command, judge: Answering) -> None:
    hand_in(competition, f"Ada Lovelace_31415{MOODLE}", "Ada Lovelace.py", "falcon.py", "Kim Lee.py")
    judge(*(accepted() for _ in range(4)))
    assert graded(command, "--no-record", "--csv", "marks.csv").code == 0
    found = marks()
    assert found["falcon"]["file"] == f"Ada Lovelace_31415{MOODLE}"
    others = {row["file"]: (author, row["id"]) for author, row in found.items() if author != "falcon" and row["file"]}
    assert others["Kim Lee.py"] == ("Kim-Lee", ""), "two have this name"
    assert {own_id for _, own_id in others.values()} == {""}


def test_an_extension_is_the_deadline_of_one_person(competition: Path, command: Command, judge: Answering) -> None:
    deadline = datetime.now(UTC).replace(microsecond=0) - timedelta(days=5)
    toml = competition / "problems/double/problem.toml"
    rules = f"deadline = {deadline.isoformat()}\nlate = {{ days = 2, penalty_per_day = 0.1 }}\n"
    toml.write_text(rules + toml.read_text())
    names, after = ("ada", "bob", "cyd", "dan"), deadline + timedelta(hours=30)
    hand_in(competition, *(f"{name}.py" for name in names))
    until = (deadline + timedelta(days=2)).replace(tzinfo=None).isoformat(" ")
    roster = f"author,extension\nada,2d\nbob,6h\ncyd,{until}\ndan,\n"
    Path("in.csv").write_text("author,handed_in\n" + "".join(f"{name},{after.isoformat()}\n" for name in names))
    judge(*(accepted(author=name, run=str(n) * 16) for n, name in enumerate(names, 1)))
    result = graded(command, "--handed-in", "in.csv", "--csv", "marks.csv", roster=roster)
    assert result.code == 0, result.out
    late = {author: (row["late_days"], row["factor"]) for author, row in marks().items()}
    assert late == {"ada": ("0", "1"), "bob": ("1", "0.9"), "cyd": ("0", "1"), "dan": ("2", "0.8")}
    [table] = rank(JsonlLedger(competition / "leaderboard/results/double.jsonl"))
    assert sorted(row.author for row in table.rows) == ["ada", "cyd"]


@pytest.mark.parametrize(
    ("roster", "why"),
    [
        ("", "roster.csv has no rows; give each person one row"),
        ("author,id\n", "roster.csv has no rows; give each person one row"),
        ("points\n1\n", "roster.csv:2 names nobody; give one of the columns author, name and id"),
        ("author\nada\nada\n", "roster.csv:3 names ada again"),
        ("name,id\nAda,1\nBob,1\n", "roster.csv:3 names the id 1 again"),
        ("author,extension\nada,soon\n", "roster.csv:2: 'soon' is no extension; write how much longer, like 2d"),
        ("author,team\nada,fast\n", "ada is in slow and fast; an author is in one team, once"),
    ],
)
def test_an_invalid_roster_is_refused(competition: Path, command: Command, roster: str, why: str) -> None:
    with (competition / "kernelmark.toml").open("a") as settings:
        settings.write('[teams]\nslow = ["ada"]\n')
    hand_in(competition, "ada.py")
    result = graded(command, roster=roster)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert why in result.err
