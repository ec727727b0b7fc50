"""The ledger: the format of a line, what survives damage, and what is reported about it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.errors import LedgerError
from harness.verdict import Outcome
from leaderboard.record.chain import Head
from leaderboard.record.entry import NO_HASH, chain_hash, decode
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from tests.verdicts import EPOCH, accepted, failed

ROOT = Path(__file__).parents[2]
SMALL = [accepted(author=f"author-{n}", run=f"{n:016x}", modes=("graphs",)) for n in range(1, 5)]


def filled(directory: Path, verdicts=SMALL) -> JsonlLedger:
    ledger = JsonlLedger(directory / "softmax.jsonl")
    for verdict in verdicts:
        ledger.append(verdict)
    return ledger


@pytest.fixture(scope="module")
def whole() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        return filled(Path(directory)).path.read_bytes()


def line(seq: int, prev: str, body: bytes) -> bytes:
    """As a version of this program writes one, whatever it holds."""
    return f'{{"seq":{seq},"prev":"{prev}","hash":"{chain_hash(seq, prev, body)}",'.encode() + body[1:] + b"\n"


def append_foreign_kind(ledger: JsonlLedger) -> None:
    """What a later version would append: an event of a kind that this one does not know."""
    last = json.loads(ledger.path.read_bytes().splitlines()[-1])
    body = b'{"kind":"withdrawal","withdrawal":{"run":"0000000000000001","text":"withdrawn"}}'
    with ledger.path.open("ab") as file:
        file.write(line(last["seq"] + 1, last["hash"], body))


def test_a_verdict_comes_back_as_it_was_recorded(tmp_path):
    verdicts = [accepted(log='a "quoted"\nline\u2028 and \x85 µ'), failed(), failed(Outcome.TIMEOUT)]
    ledger = JsonlLedger(tmp_path / "not" / "yet" / "there" / "softmax.jsonl")
    returned = [ledger.append(verdict) for verdict in verdicts]
    entries = list(ledger.read())
    assert returned == entries
    assert [entry.verdict for entry in entries] == verdicts
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert all(entry.warnings == () for entry in entries)
    assert ledger.path.read_bytes().count(b"\n") == 3
    assert not ledger.torn_path.exists()


def test_the_format_can_be_checked_with_json_and_sha256_alone(whole):
    prev = NO_HASH
    for number, line in enumerate(whole.splitlines(), start=1):
        record = json.loads(line)
        assert list(record) == ["seq", "prev", "hash", "kind", "verdict"]
        assert (record["seq"], record["prev"], record["kind"]) == (number, prev, "verdict")
        body = b'{"kind"' + line.split(b',"kind"', 1)[1]
        digest = hashlib.sha256()
        for part in (b"kernelmark ledger", str(number).encode(), prev.encode(), body):
            digest.update(len(part).to_bytes(8, "big") + part)
        assert record["hash"] == digest.hexdigest()
        prev = record["hash"]


def test_a_ledger_that_does_not_exist_is_empty_and_is_not_made_by_reading(tmp_path):
    ledger = JsonlLedger(tmp_path / "results" / "softmax.jsonl")
    assert (list(ledger.read()), ledger.verify()) == ([], 0)
    assert not ledger.path.parent.exists()


def test_a_verdict_on_another_problem_is_refused(tmp_path):
    ledger = JsonlLedger(tmp_path / "softmax.jsonl")
    with pytest.raises(LedgerError, match="'matmul' belongs in another ledger"):
        ledger.append(accepted(problem="matmul"))
    assert not ledger.path.exists()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_truncation_at_any_byte_loses_the_unfinished_line_and_no_other(whole, data):
    kept = whole[: data.draw(st.integers(0, len(whole)))]
    finished, torn = kept.count(b"\n"), kept[kept.rfind(b"\n") + 1 :]
    assume(not torn.endswith(b"}") or whole[len(kept) : len(kept) + 1] != b"\n")  # it lacks its newline alone
    with tempfile.TemporaryDirectory() as directory:
        ledger = JsonlLedger(Path(directory) / "softmax.jsonl")
        ledger.path.write_bytes(kept)
        assert [entry.verdict for entry in ledger.read()] == SMALL[:finished]
        assert ledger.path.read_bytes() == kept, "a reader changes nothing"

        late = accepted(author="late")
        entry = ledger.append(late)
        assert [entry.verdict for entry in ledger.read()] == [*SMALL[:finished], late]
        assert ledger.verify() == finished + 1
        assert bool(entry.warnings) == bool(torn)
        if torn:
            assert f"{len(torn)} bytes of an unfinished last line" in entry.warnings[0]
            assert ledger.torn_path.read_bytes() == torn + b"\n"


@pytest.mark.parametrize("lines", [1, 4])
def test_a_last_line_that_lacks_its_newline_alone_is_kept(tmp_path, whole, lines):
    ledger, kept = JsonlLedger(tmp_path / "softmax.jsonl"), b"".join(whole.splitlines(keepends=True)[:lines])
    ledger.path.write_bytes(kept[:-1])
    head = Head(len(kept), lines, decode(kept.splitlines(keepends=True)[-1]).hash)
    ledger.refuse_another(head)
    again = ledger.append(SMALL[lines - 1], unless_run=True)
    assert again.verdict == SMALL[lines - 1], "its writer tries again, and finds it"
    assert ledger.path.read_bytes() == kept
    ledger.refuse_another(head)
    ledger.path.write_bytes(kept[:-2])
    with pytest.raises(LedgerError, match="no longer ends at"):
        ledger.refuse_another(head)
    ledger.path.write_bytes(kept[:-1])
    entry = ledger.append(late := accepted(author="late"), unless_run=True, head=head)
    assert entry.warnings == (f"{ledger.path}: line {lines} lacked its newline, which was added",)
    assert [entry.verdict for entry in ledger.read()] == [*SMALL[:lines], late]
    assert ledger.path.read_bytes().startswith(kept)
    assert not ledger.torn_path.exists()


@pytest.mark.parametrize("last", [0, 2, 7])
def test_a_whole_line_of_another_place_without_its_newline_is_set_aside(tmp_path, whole, last):
    ledger = filled(tmp_path, [failed() for _ in range(4)])
    lines = [*whole.splitlines(keepends=True), *ledger.path.read_bytes().splitlines(keepends=True)]
    ledger.path.write_bytes(lines[0] + lines[last][:-1])
    (warning,) = ledger.append(SMALL[1]).warnings
    assert f"{len(lines[last]) - 1} bytes of an unfinished last line were moved" in warning
    assert ledger.verify() == 2


@settings(deadline=None, max_examples=150)
@given(data=st.data(), flip=st.integers(1, 255))
def test_a_flipped_byte_is_reported_with_its_line(whole, data, flip):
    place = data.draw(st.integers(0, len(whole) - 2))  # without the last newline: a line without it is a torn one
    damaged = bytearray(whole)
    damaged[place] ^= flip
    number = whole[:place].count(b"\n") + 1
    with tempfile.TemporaryDirectory() as directory:
        ledger = JsonlLedger(Path(directory) / "softmax.jsonl")
        ledger.path.write_bytes(damaged)
        with pytest.raises(LedgerError, match=rf"softmax\.jsonl line {number}\b"):
            ledger.verify()
        with pytest.raises(LedgerError, match=rf"softmax\.jsonl line {number}\b"):
            list(ledger.read())


@pytest.mark.parametrize(
    ("order", "line"),
    [
        pytest.param([0, 2, 3], 2, id="a line removed"),
        pytest.param([1, 2, 3], 1, id="the first line removed"),
        pytest.param([0, 2, 1, 3], 2, id="two lines exchanged"),
        pytest.param([0, 1, 1, 2, 3], 3, id="a line doubled"),
        # A line of another ledger has the right number; only `prev` tells that it was not written after the one before.
        pytest.param([4, 1, 2, 3], 2, id="the first of another ledger"),
        pytest.param([0, 1, 2, 7], 4, id="the last of another ledger"),
    ],
)
def test_whole_lines_out_of_place_break_the_chain(tmp_path, whole, order, line):
    ledger = filled(tmp_path, [failed() for _ in range(4)])
    lines = [*whole.splitlines(keepends=True), *ledger.path.read_bytes().splitlines(keepends=True)]
    ledger.path.write_bytes(b"".join(lines[index] for index in order))
    with pytest.raises(LedgerError, match=rf"line {line} does not follow from the line before it"):
        ledger.verify()


def test_nothing_is_appended_to_a_broken_last_line_and_a_number_has_no_zero_before_it(tmp_path, whole):
    ledger = JsonlLedger(tmp_path / "softmax.jsonl")
    damaged = whole[:-20] + b"X" + whole[-19:]
    ledger.path.write_bytes(damaged)
    with pytest.raises(LedgerError, match=r"line 4 was changed after it was written"):
        ledger.append(SMALL[0])
    assert ledger.path.read_bytes() == damaged
    ledger.path.write_bytes(whole.replace(b'{"seq":1,', b'{"seq":01,', 1))
    with pytest.raises(LedgerError, match="line 1 is not a ledger line"):
        ledger.verify()


def test_entries_of_unknown_kinds_are_chained_and_skipped(tmp_path):
    ledger = filled(tmp_path, SMALL[:2])
    append_foreign_kind(ledger)
    entry = ledger.append(SMALL[2])
    assert entry.seq == 4
    assert [entry.seq for entry in ledger.read()] == [1, 2, 4]
    assert ledger.verify() == 4
    assert [entry.seq for entry in ledger.runs("0000000000000001")] == [1]


def test_runs_are_found_by_the_beginning_of_their_ids(tmp_path):
    runs = ["aa00000000000001", "aa00000000000002", "b000000000000003"]
    ledger = filled(tmp_path, [accepted(run=run, log='"run":"c0') for run in runs])
    for prefix, expected in (("b", runs[2:]), (runs[0], runs[:1]), ("aa", runs[:2]), ("c0", []), ("", runs)):
        assert [entry.verdict.run for entry in ledger.runs(prefix)] == expected


def test_a_verdict_of_another_version_is_not_a_broken_chain(tmp_path):
    ledger = filled(tmp_path, SMALL[:1])
    body = b'{"kind":"verdict",' + ledger.path.read_bytes().split(b'"kind":"verdict",')[1][:-1]
    ledger.path.write_bytes(line(1, NO_HASH, body.replace(b'"schema_version":2', b'"schema_version":3')))
    assert ledger.verify() == 1
    with pytest.raises(LedgerError, match=r"ledger entry 1: schema_version: .*read it with the version that wrote it"):
        ledger.runs("0")


LIMITED = """
import resource, sys
from pathlib import Path
from harness.errors import LedgerError
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import accepted
path, limit = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    JsonlLedger(path).append(accepted(run="f" * 16))
except LedgerError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 700])
def test_a_write_that_comes_up_short_leaves_nothing_behind(tmp_path, room):
    """The file-size limit stands in for the full disk: the kernel writes what fits, and says how much that was."""
    ledger = filled(tmp_path, SMALL[:2])
    before = ledger.path.read_bytes()
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, str(ledger.path), str(len(before) + room)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=60,
    )
    assert "the verdict was not recorded" in child.stdout
    assert ("File too large" if room == 0 else f"only {room:,} of ") in child.stdout
    assert ledger.path.read_bytes() == before
    assert not ledger.torn_path.exists()
    assert ledger.append(SMALL[2]).seq == 3


def test_a_failed_fsync_takes_the_line_back(tmp_path, monkeypatch):
    ledger = filled(tmp_path, SMALL[:1])
    before = ledger.path.read_bytes()
    monkeypatch.setattr(os, "fsync", Mock(side_effect=[OSError(5, "Input/output error"), None]))
    with pytest.raises(LedgerError, match=r"was not recorded \(Input/output error\)"):
        ledger.append(SMALL[1])
    assert ledger.path.read_bytes() == before


def test_the_line_is_durable_when_append_returns(tmp_path, monkeypatch):
    """A new file is synced, and so is every directory that was made for it; an old one needs only itself."""
    synced: list[str] = []
    fsync = os.fsync

    def recording(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recording)
    ledger = JsonlLedger(tmp_path / "board" / "results" / "softmax.jsonl")
    ledger.append(SMALL[0])
    assert synced == [tmp_path.name, "board", "softmax.jsonl", "results"]
    synced.clear()
    ledger.append(SMALL[1])
    assert synced == ["softmax.jsonl"]


def test_the_cost_of_appending_does_not_grow_with_the_file(tmp_path, monkeypatch):
    read = Mock(side_effect=os.pread)
    ledger = filled(tmp_path, [accepted() for _ in range(60)])
    assert ledger.path.stat().st_size > 400_000
    monkeypatch.setattr(os, "pread", read)
    ledger.append(SMALL[0])
    assert 0 < sum(length for _, length, _ in (call.args for call in read.mock_calls)) <= 1 << 16


def test_a_line_longer_than_the_tail_that_is_read_first(tmp_path):
    ledger = filled(tmp_path, [SMALL[0], accepted(log="x" * 900_000), SMALL[1], accepted(log="y" * 70_000)])
    with ledger.path.open("ab") as file:
        file.write(b'{"seq":5,' + b"z" * 300_000)
    assert len(list(ledger.read())) == 4
    assert ledger.append(SMALL[2]).seq == 5
    assert ledger.verify() == 5


def test_a_file_replaced_while_waiting_for_its_lock_is_not_written_to(tmp_path):
    """A checkout replaces the file; a line written to the old one would be gone with it."""
    ledger, other = filled(tmp_path / "a", SMALL[:1]), filled(tmp_path / "b", SMALL[:3])
    with ledger.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = threading.Thread(target=ledger.append, args=(SMALL[3],))
        writer.start()
        time.sleep(0.2)
        assert writer.is_alive(), "it waits for the lock"
        other.path.replace(ledger.path)
    writer.join(timeout=10)
    assert [entry.verdict for entry in ledger.read()] == SMALL
    assert ledger.verify() == 4


def test_an_unwritable_place_is_one_clear_line(tmp_path):
    (tmp_path / "results").write_text("a file where the directory should be")
    ledger = JsonlLedger(tmp_path / "results" / "softmax.jsonl")
    with pytest.raises(LedgerError, match=r"softmax\.jsonl cannot be appended to \(.+\)"):
        ledger.append(SMALL[0])
    with pytest.raises(LedgerError, match=r"softmax\.jsonl cannot be read \(Not a directory\)"):
        ledger.verify()


@settings(deadline=None, max_examples=100)
@given(data=st.data(), put=st.binary(min_size=1, max_size=4) | st.sampled_from([b"0", b"00", b" ", b"\r", b"+"]))
def test_bytes_put_into_a_whole_line_are_reported(whole, data, put):
    place = data.draw(st.integers(0, len(whole) - 1))
    with tempfile.TemporaryDirectory() as folder:
        ledger = JsonlLedger(Path(folder) / "softmax.jsonl")
        changed = whole[:place] + put + whole[place:]
        ledger.path.write_bytes(changed)
        lines = whole.splitlines(keepends=True)
        if lines == [line for line in changed.splitlines(keepends=True) if line in lines]:
            return  # beside the whole lines, and no part of one: such a line is passed over
        with pytest.raises(LedgerError):
            ledger.verify()


def test_a_run_is_found_by_its_whole_id(tmp_path):
    ledger = JsonlLedger(tmp_path / "softmax.jsonl")
    assert ledger.find("a" * 16) is None, "there is no ledger yet"
    named = accepted(run="a" * 16, log='its log names "run":"bbbbbbbbbbbbbbbb"', modes=("graphs",))
    for verdict in (*SMALL, named):
        ledger.append(verdict)
    ledger.moderate(Moderation(run="a" * 16, action="annotate", actor="ada", reason="fine", created_at=EPOCH))
    append_foreign_kind(ledger)
    assert ledger.find("a" * 16) == named
    assert [ledger.find(each.run) for each in SMALL] == SMALL
    for unknown in ("b" * 16, "a" * 15, "a" * 17, "", '"', "0"):
        assert ledger.find(unknown) is None, unknown


def test_a_run_is_not_found_in_a_broken_chain(tmp_path):
    ledger = filled(tmp_path)
    damaged = ledger.path.read_bytes().replace(b'"author":"author-1"', b'"author":"author-9"')
    ledger.path.write_bytes(damaged)
    with pytest.raises(LedgerError, match="line 1"):
        ledger.find(SMALL[3].run)
