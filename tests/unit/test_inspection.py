"""`kernelmark verify`: every kind of damage is found, all of it at once, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.problem import load
from harness.submission import Submission
from harness.verdict import Verdict
from leaderboard.record.archive import archive
from leaderboard.record.current import Current
from leaderboard.record.entry import MODERATION, VERDICT, Entry, encode
from leaderboard.record.inspection import inspect
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from tests.documents import items
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted, failed


def graded(author: str, *, sha256: str = "d" * 64, right: bool = True) -> tuple[Submission, Verdict]:
    submission = Submission.of(f"# {author}\n", "py", author=author, name="kernel.py")
    make = accepted if right else failed
    return submission, make(submission=submission, problem="double", problem_sha256=sha256)


@pytest.fixture
def ledger(competition: Path) -> JsonlLedger:
    found = JsonlLedger(competition / "leaderboard/results/double.jsonl")
    now = load(competition / "problems/double").sha256
    for author, sha256, right in (("ada", now, True), ("bob", "e" * 64, True), ("eve", now, False), ("joe", now, True)):
        submission, verdict = graded(author, sha256=sha256, right=right)
        archive(competition / "leaderboard/archive", "double", submission)
        found.append(verdict)
    return found


def test_an_honest_ledger_has_no_fault_and_every_entry_is_accounted_for(ledger: JsonlLedger, command: Command) -> None:
    counts = "3 verdicts on the current problem, 1 on earlier versions of it"
    assert command("verify")[:2] == (0, f"double.jsonl: 4 entries, {counts}\n")
    run = next(ledger.read()).verdict.run
    assert command("moderate", "annotate", run, "--actor", "grace", "--reason", "why").code == 0
    assert command("verify").out == f"double.jsonl: 5 entries, {counts}, 1 other\n"


def test_a_place_without_a_ledger_is_named(command: Command, competition: Path) -> None:
    result = command("verify")
    assert (result.code, result.out) == (0, f"nothing is recorded in {competition / 'leaderboard/results'}\n")


def flip(path: Path) -> None:
    first, second, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, second.replace(b'"outcome":"', b'"outcome":"A', 1), *others]))


def drop(path: Path) -> None:
    first, _, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, *others]))


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def lose_newline(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def appended(make: Callable[[list[Entry]], bytes], kind: str = VERDICT) -> Callable[[Path], None]:
    """A document that follows from the last line, whatever it says; it is made from the entries."""

    def append(path: Path) -> None:
        entries = list(JsonlLedger(path).entries())
        with path.open("ab") as file:
            file.write(encode(entries[-1], make(entries), kind=kind)[1])

    return append


ORPHAN = Moderation(run="f" * 16, action="annotate", actor="x", reason="y", created_at=EPOCH).to_json().encode()


@pytest.mark.parametrize(
    ("damage", "faults"),
    [
        (flip, ["2 was changed after it was written"]),
        (drop, ["2 says that it is line 3", "2 does not follow", "3 says that it is line 4"]),
        (tear, ["4: an unfinished last line"]),
        (lose_newline, ["4: lacks its newline, which the next recorded result adds"]),
        (appended(lambda entries: entries[0].document), ["5 has run"]),
        (
            appended(lambda _: ORPHAN, MODERATION),
            ["5: moderates run ffffffffffffffff, which is not in this ledger"],
        ),
        (appended(lambda _: b'{"schema_version":9}'), ["5: ledger entry 5"]),
        (
            appended(lambda _: accepted(problem="softmax").to_json().encode()),
            ["5 is on problem 'softmax', in the ledger of 'double'", "5: run"],
        ),
    ],
    ids=[
        "changed",
        "dropped",
        "torn",
        "without newline",
        "doubled",
        "of no run",
        "of another version",
        "of another problem",
    ],
)
def test_damage_is_reported_with_its_line(
    ledger: JsonlLedger, command: Command, damage: Callable[[Path], None], faults: list[str]
) -> None:
    damage(ledger.path)
    result = command("verify")
    assert result.code == 7
    lines = [line for line in result.out.splitlines() if line.startswith(str(ledger.path))]
    assert len(lines) == len(faults)
    for line, fault in zip(lines, faults, strict=True):
        assert line.startswith(f"{ledger.path}:{fault}")


def test_sources_are_compared_with_what_was_graded(ledger: JsonlLedger, command: Command, competition: Path) -> None:
    (ada,) = (competition / "leaderboard/archive/double/ada").iterdir()
    (eve,) = (competition / "leaderboard/archive/double/eve").iterdir()
    ada.write_text("# another\n")
    eve.unlink()
    flip(ledger.path)
    result = command("verify")
    assert result.code == 7
    one, two, three = result.out.splitlines()[:3]
    assert one.startswith(f"{ledger.path}:1: run ")
    assert "is not what was graded" in one
    assert two.startswith(f"{ledger.path}:2 was changed")
    assert three.startswith(f"{ledger.path}:3: run ")
    assert "cannot be read (No such file or directory)" in three


def test_every_ledger_is_examined_after_a_broken_one(ledger: JsonlLedger, command: Command) -> None:
    other = ledger.path.with_name("aaa.jsonl")
    other.write_text("nonsense\nmore nonsense\n")
    result = command("verify", "--format", "json")
    assert result.code == 7
    first, second = items(result.out)
    assert [fault["line"] for fault in first["faults"]] == [1, 2]
    assert (second["faults"], second["entries"]) == ([], 4)


def test_a_problem_that_is_gone_is_no_fault(ledger: JsonlLedger, competition: Path) -> None:
    found = inspect(ledger.path, competition / "leaderboard/archive", Current(problems={}, protocol=1))
    assert (found.faults, found.unknown) == ([], 4)
