"""Merging two ledgers: nothing is lost, changed or counted twice, and what contradicts itself is refused."""

from __future__ import annotations

import itertools
import random
import shutil
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import LedgerError
from harness.verdict import Verdict
from leaderboard.record.entry import Entry, encode
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.merge import merge
from leaderboard.record.moderation import Action, Moderation
from tests.ranked import rank
from tests.repository import commit, git, init
from tests.unit.conftest import ROOT, Command
from tests.verdicts import EPOCH, accepted

MODEL = accepted(modes=("graphs",), problem="double")
Happening = Verdict | Moderation


def verdict(run: int, minute: int = 0, author: str = "ada") -> Verdict:
    submission = MODEL.submission.model_copy(update={"author": author})
    moment = EPOCH + timedelta(minutes=minute)
    return MODEL.model_copy(update={"run": f"{run:016x}", "created_at": moment, "submission": submission})


def event(run: int, action: Action, minute: int) -> Moderation:
    moment = EPOCH + timedelta(minutes=minute)
    return Moderation(run=f"{run:016x}", action=action, actor="grace", reason="why", created_at=moment)


def lines(*happened: Happening, after: bytes = b"") -> bytes:
    last = entries(after)[-1] if after else None
    for each in happened:
        kind = "verdict" if isinstance(each, Verdict) else "moderation"
        last, line = encode(last, each.to_json().encode(), kind=kind)
        after += line
    return after


def entries(content: bytes) -> list[Entry]:
    with tempfile.TemporaryDirectory() as directory:
        ledger = JsonlLedger(Path(directory) / "double.jsonl")
        ledger.path.write_bytes(content)
        assert ledger.verify() == content.count(b"\n")
        return list(ledger.entries())


def runs(content: bytes) -> list[int]:
    return [int(e.verdict.run if e.kind == "verdict" else e.moderation.run, 16) for e in entries(content)]


BASE = lines(verdict(1), verdict(2, 1))


def test_merged_lines_follow_the_common_ones_by_time() -> None:
    ours = lines(verdict(3, 10), verdict(5, 30), after=BASE)
    theirs = lines(verdict(4, 20), verdict(6, 5), verdict(7, 40), after=BASE)
    merged = merge(ours, theirs, BASE)
    assert merged.startswith(BASE)
    assert runs(merged) == [1, 2, 3, 4, 6, 5, 7], "6 was appended after 4, whatever its clock said"
    assert merge(theirs, ours, BASE) == merged
    documents = {e.document for e in entries(ours)} | {e.document for e in entries(theirs)}
    assert {e.document for e in entries(merged)} == documents, "byte for byte"


@settings(deadline=None, max_examples=80)
@given(
    minutes=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=8),
    shared=st.integers(0, 2),
    again=st.booleans(),
)
def test_merging_is_lossless_and_symmetric(minutes: list[tuple[bool, int]], shared: int, again: bool) -> None:
    base = lines(*(verdict(900 + n) for n in range(shared)))
    mine = [verdict(n, minute) for n, (ours, minute) in enumerate(minutes) if ours]
    others = [verdict(n, minute) for n, (ours, minute) in enumerate(minutes) if not ours]
    ours, theirs = lines(*mine, after=base), lines(*others, after=base)
    merged = merge(ours, theirs, base)
    assert merged == merge(theirs, ours, base)
    found = runs(merged)
    assert sorted(found) == sorted(runs(ours) + runs(theirs)[shared:])
    for one in (mine, others):
        order = [found.index(int(each.run, 16)) for each in one]
        assert order == sorted(order), "each copy's own order is kept"
    if again:  # one side goes on, the other has merged already: nothing is there twice
        further = lines(verdict(800, 9), after=ours)
        assert sorted(runs(merge(merged, further, base))) == sorted([*found, 800])


def test_the_last_event_stays_the_last() -> None:
    ours = lines(event(1, "disqualify", 50), event(1, "reinstate", 10), after=BASE)
    theirs = lines(verdict(3, 20), after=BASE)
    (table,) = rank(entries(merge(ours, theirs, BASE)))
    assert table.set_aside == ()


def test_an_event_of_a_later_version_is_kept_where_it_stands() -> None:
    last = entries(BASE)[-1]
    strange, line = encode(last, b'{"what":1}', kind="withdrawal")
    merged = merge(BASE + line, lines(verdict(3, 20), after=BASE), BASE)
    assert strange.document in {entry.document for entry in entries(merged)}


def changed(content: bytes) -> bytes:
    """The second verdict with another author, and everything behind it chained to that."""
    first, second, *rest = [entry.document for entry in entries(content)]
    second = second.replace(b'"author":"ada"', b'"author":"eve"')
    out, last = b"", None
    for document in (first, second, *rest):
        last, line = encode(last, document)
        out += line
    return out


THIRD = lines(verdict(3, 10), after=BASE)


@pytest.mark.parametrize(
    ("ours", "theirs", "base", "message"),
    [
        (THIRD, changed(THIRD), BASE, "theirs does not begin with the base"),
        (changed(THIRD), THIRD, BASE, "ours does not begin with the base"),
        (THIRD, changed(THIRD), None, "run 0000000000000002: ours and theirs have different verdicts"),
        (THIRD, BASE[: BASE.index(b"\n") + 1], BASE, "theirs does not begin with the base"),
        (THIRD, THIRD[:-9], BASE, "theirs line 3 is not a ledger line"),
        (THIRD.replace(b"ada", b"eve"), THIRD, None, "ours line 1 was changed after it was written"),
        (lines(verdict(3)), lines(verdict(4)), None, "not even have their first line in common"),
        (
            lines(verdict(3)),
            lines(accepted(problem="gelu", run="f" * 16)),
            b"",
            "ledgers of different problems: double, gelu",
        ),
    ],
)
def test_contradictory_content_is_refused(ours: bytes, theirs: bytes, base: bytes | None, message: str) -> None:
    with pytest.raises(LedgerError, match=message):
        merge(ours, theirs, base)


def test_two_new_ledgers_are_merged_with_an_empty_base() -> None:
    assert runs(merge(lines(verdict(3, 2)), lines(verdict(4, 1)), b"")) == [4, 3]


def test_the_command_leaves_ours_as_it_was_when_it_refuses(competition: Path, command: Command) -> None:
    (competition / "ours").write_bytes(THIRD)
    (competition / "theirs").write_bytes(changed(THIRD))
    (competition / "base").write_bytes(BASE)
    result = command("merge-ledger", "ours", "theirs", "--base", "base")
    assert (result.code, result.err.count("\n")) == (7, 1)
    assert (competition / "ours").read_bytes() == THIRD
    (competition / "theirs").write_bytes(lines(verdict(4, 5), after=BASE))
    assert command("merge-ledger", "ours", "theirs", "--base", "base").code == 0
    assert runs((competition / "ours").read_bytes()) == [1, 2, 4, 3]


DRIVER = f'PYTHONPATH="{ROOT}" "{sys.executable}" -c "from kernelmark.commands.scripts import main; main()"'
LEDGER = "leaderboard/results/double.jsonl"


@pytest.fixture
def branches(competition: Path) -> Path:
    """A repository in which `main` and `other` both recorded a result behind a common one."""
    shutil.copy(ROOT / ".gitattributes", competition)
    ledger = JsonlLedger(competition / LEDGER)
    ledger.append(verdict(1))
    init(competition)
    git(competition, "checkout", "-qb", "other")
    ledger.append(verdict(2, 5, "bob"))
    commit(competition, {"leaderboard/BOARD.md": "theirs\n"})
    git(competition, "checkout", "-q", "main")
    ledger.append(verdict(3, 4, "eve"))
    commit(competition, {"leaderboard/BOARD.md": "ours\n"})
    return competition


def test_git_merges_with_the_documented_driver(branches: Path, command: Command) -> None:
    git(branches, "config", "merge.kernelmark-ledger.driver", f"{DRIVER} merge-ledger --base %O %A %B")
    git(branches, "config", "merge.kernelmark-either.driver", "true")
    git(branches, "merge", "-q", "other")
    assert runs((branches / LEDGER).read_bytes()) == [1, 3, 2]
    assert git(branches, "status", "--porcelain") == ""
    assert command("board", "--write").code == 0
    assert all(f"| {who} |" in (branches / "leaderboard/BOARD.md").read_text() for who in ("ada", "bob", "eve"))


def test_a_conflict_that_git_left_is_put_right_by_the_documented_commands(branches: Path, command: Command) -> None:
    git(branches, "merge", "-q", "other", status=1)
    assert "<<<<<<<" in (branches / LEDGER).read_text()
    for stage, name in ((1, "base"), (2, "ours"), (3, "theirs")):
        (branches / name).write_text(git(branches, "show", f":{stage}:{LEDGER}"))
    assert command("merge-ledger", "ours", "theirs", "--base", "base").code == 0
    shutil.copy(branches / "ours", branches / LEDGER)
    assert runs((branches / LEDGER).read_bytes()) == [1, 3, 2]


def test_ties_in_time_merge_in_one_order_for_everyone() -> None:
    tails = [lines(verdict(n, 7), after=BASE) for n in range(10, 14)]
    random.Random(1).shuffle(tails)
    for one, other in itertools.pairwise(tails):
        assert merge(one, other, BASE) == merge(other, one, BASE)
