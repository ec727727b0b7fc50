"""Near-duplicates: superficial changes count for little, an author's own code counts, and nothing else is done."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from harness.submission import Submission
from kernelmark.project.settings import Settings
from kernelmark.record import recording
from leaderboard.record.similar import SHINGLE, GradedFile, similar, tokens
from tests.documents import items
from tests.unit.conftest import ROOT, Command
from tests.verdicts import accepted

SOFTMAX = (ROOT / "reference/softmax/triton.py").read_text()
GELU = (ROOT / "reference/gelu/triton.py").read_text()


def submitted(language: str = "py", **sources: str) -> dict[GradedFile, Submission]:
    """Files by their authors; a number after the author is the run."""
    found = {}
    for author, source in sources.items():
        graded = GradedFile(author=author.rstrip("0123456789"), run=author, name="kernel.py")
        found[graded] = Submission.of(source, language, author=graded.author)
    return found


@pytest.mark.parametrize(
    ("source", "language", "expected"),
    [
        ("x = a + 1  # why\n", "py", "name = name + 1"),
        ('def f(x): return "a # b"', "py", 'def name ( name ) : return ""'),
        ("'''doc\n# no comment'''\ny", "py", '"" name'),
        ("int a = 3; // why\n/* and\n how */ float b;", "cu", "int name = 3 ; float name ;"),
        ('char* s = "a // b";', "cpp", 'char * name = "" ;'),
        ("/* never ends", "cpp", ""),
        ("'never ends\nx", "py", '"" name'),
        ("'''never ends\nx", "py", '""'),
    ],
)
def test_normalized_sources_have_no_names_texts_or_comments(source: str, language: str, expected: str) -> None:
    assert " ".join(tokens(source, language)) == expected


def disguised(source: str) -> str:
    """Every name but the language's and the library's own replaced, comments added, the layout changed."""
    names = set(re.findall(r"\b[a-z_]{3,}\b", source)) & {"softmax", "row", "rows", "cols", "values", "powers", "start"}
    for name in names:
        source = re.sub(rf"\b{name}\b", f"my_{name[::-1]}", source)
    return "# entirely my own work\n" + source.replace("\n\n", "\n# ----\n\n\n").replace(" + ", "+")


def test_a_disguised_copy_is_found_and_another_kernel_is_not() -> None:
    found = submitted(ada=SOFTMAX, eve=disguised(SOFTMAX), joe=GELU)
    (pair,) = similar(found, 0.8)
    assert (pair.one.author, pair.other.author, pair.similarity) == ("ada", "eve", 1.0)
    assert len(similar(found, 0.0)) == 3
    assert all(pair.similarity < 0.5 for pair in similar(found, 0.0)[1:])


def test_an_authors_own_versions_and_other_languages_are_not_compared() -> None:
    assert similar(submitted(ada1=SOFTMAX, ada2=SOFTMAX), 0.0) == []
    assert similar(submitted(ada=SOFTMAX) | submitted("cu", eve=SOFTMAX), 0.0) == []


def test_empty_sources_and_hostile_ones_end() -> None:
    hostile = {"ada": "", "eve": "", "joe": "'" * 50_000, "zoe": "/*" * 50_000, "kim": '"""' + "\\" * 50_000}
    hostile |= {"una": "'" + "\\'" * 200_000, "ivo": "'''" + '"""' * 50_000}
    began = time.perf_counter()
    pairs = similar(submitted(**hostile), 0.9)
    assert ("ada", "eve") in [(pair.one.author, pair.other.author) for pair in pairs]
    assert time.perf_counter() - began < 120


def test_the_command_lists_and_does_nothing(competition: Path, command: Command) -> None:
    for author, source in (("ada", SOFTMAX), ("eve", disguised(SOFTMAX)), ("joe", GELU)):
        submission = Submission.of(source, "py", author=author, name="kernel.py")
        recording.record(Settings.load(), submission, accepted(submission=submission, problem="double"))
    before = {path: path.read_bytes() for path in competition.rglob("*") if path.is_file()}
    head, line = command("similar", "double").out.splitlines()
    assert head.split() == ["similarity", "file", "nearly", "the", "same", "as", "length", "group"]
    assert line.split()[:2] == ["1.00", "ada"]
    assert " eve " in line
    [pair] = items(command("similar", "double", "--threshold", "0.99", "--format", "json").out)
    assert pair["similarity"] == 1
    assert [(pair[side]["author"], pair[side]["name"]) for side in ("one", "other")] == [
        ("ada", "kernel.py"),
        ("eve", "kernel.py"),
    ]
    assert all(len(pair[side]["run"]) == 16 for side in ("one", "other"))
    (competition / "leaderboard/archive/double/eve").rename(competition / "elsewhere")
    result = command("similar", "double")
    assert result.out == "no two files of 2 are that similar\n"
    assert result.err.count("the archived source cannot be read") == 1
    (competition / "elsewhere").rename(competition / "leaderboard/archive/double/eve")
    assert {path: path.read_bytes() for path in competition.rglob("*") if path.is_file()} == before
    assert command("similar", "nothing").code == 2


STARTER = SOFTMAX[: len(SOFTMAX) // 2]
OWN = {
    "ada": """
def more(x):
    for each in range(7):
        x = x * each + each - 3 if x > each else x / 2
    return x
""",
    "bob": """
class Other:
    def __init__(self, a, b=1):
        self.a, self.b = [a] * b, {b: a}
        assert not a
""",
}


def test_starting_code_counts_for_nothing() -> None:
    found = submitted(ada=STARTER + OWN["ada"], bob=STARTER + OWN["bob"], eve=STARTER + OWN["ada"], joe=STARTER)
    start = [Submission.of(STARTER, "py", author="start")]
    assert len(similar(found, 0.6)) == 6
    [pair] = similar(found, 0.1, base=start)
    assert (pair.one.author, pair.other.author, pair.similarity) == ("ada", "eve", 1.0)
    assert 20 < pair.length < len(tokens(OWN["ada"], "py")) + SHINGLE
    elsewhere = [Submission.of(STARTER, "cu", author="start")]
    assert len(similar(found, 0.6, base=elsewhere)) == 6, "it is starting code of its own language"


def test_two_people_have_one_row_and_who_is_alike_is_in_a_group() -> None:
    found = submitted(ada1=SOFTMAX, ada2=SOFTMAX + OWN["ada"], eve1=disguised(SOFTMAX), eve2=SOFTMAX + OWN["ada"])
    found |= submitted(joe=SOFTMAX, kim=GELU, lee=disguised(GELU).replace("softmax", "gelu"))
    pairs = similar(found, 0.7)
    people = [(pair.one.author, pair.other.author, pair.group) for pair in pairs]
    assert sorted(people) == [("ada", "eve", 1), ("ada", "joe", 1), ("eve", "joe", 1), ("kim", "lee", 2)]
    assert pairs[0].similarity == 1.0


def test_hand_ins_are_compared_with_earlier_ones_without_a_record(competition: Path, command: Command) -> None:
    files = {
        "now/ada.py": STARTER + OWN["ada"] + "# <script>alert(1)</script>\n",
        "now/bob.py": STARTER + OWN["bob"],
        "now/cyd/notes.txt": "",
        "now/joe.py": STARTER + OWN["ada"],
        "2025/ada.py": STARTER + OWN["bob"],
        "2025/zed.py": STARTER + OWN["bob"],
        "start.py": STARTER,
    }
    for name, content in files.items():
        (competition / name).parent.mkdir(exist_ok=True)
        (competition / name).write_text(content)
    result = command("similar", "double", "now", "--base", "start.py", "--with", "2025", "--html", "out.html")
    assert result.code == 0, result.err
    assert "note: now: 1 submission without a kernel to compare\n" in result.err
    _, *rows, group = result.out.splitlines()
    assert [row.split()[:-2] for row in rows] == [
        ["1.00", "2025", "ada", "ada.py", "bob", "bob.py"],
        ["1.00", "2025", "zed", "zed.py", "bob", "bob.py"],
        ["1.00", "ada", "ada.py", "joe", "joe.py"],
    ]
    assert group == "group 1: ada (2025), bob, zed (2025)"
    text = (competition / "out.html").read_text()
    assert text.count("<h2>") == 3
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    marked, pale = (re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("mark", "i"))
    assert any("def more(x):\n    for each in range(7):" in one for one in marked)
    assert any("@triton.jit\ndef" in one for one in pale)
    assert not (competition / "leaderboard").exists()
    listed = json.loads(command("similar", "double", "now", "--with", "2025", "--format", "json").out)["items"]
    assert {pair["one"]["earlier"] for pair in listed} == {"2025", ""}
    assert command("similar", "double", "nowhere").code == 2
