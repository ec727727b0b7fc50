"""Near-duplicates: what a copyist changes counts for little, what an author writes counts, and nothing is done."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from harness.submission import Submission
from kernelmark.project.settings import Settings
from kernelmark.record import recording
from leaderboard.record.similar import GradedFile, similar, tokens
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
def test_what_a_source_is_without_names_texts_and_comments(source: str, language: str, expected: str) -> None:
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
    assert time.perf_counter() - began < 20


def test_the_command_lists_and_does_nothing(competition: Path, command: Command) -> None:
    for author, source in (("ada", SOFTMAX), ("eve", disguised(SOFTMAX)), ("joe", GELU)):
        submission = Submission.of(source, "py", author=author, name="kernel.py")
        recording.record(Settings.load(), submission, accepted(submission=submission, problem="double"))
    before = {path: path.read_bytes() for path in competition.rglob("*") if path.is_file()}
    head, line = command("similar", "double").out.splitlines()
    assert head.split() == ["similarity", "file", "nearly", "the", "same", "as"]
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
    said = command("similar", "double")
    assert said.out == "no two files of 2 are that similar\n"
    assert said.err.count("the archived source cannot be read") == 1
    (competition / "elsewhere").rename(competition / "leaderboard/archive/double/eve")
    assert {path: path.read_bytes() for path in competition.rglob("*") if path.is_file()} == before
    assert command("similar", "nothing").code == 2
