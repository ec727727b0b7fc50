"""The index of a ledger: whatever happens to the index, the ledger decides."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

import pytest

from harness.errors import LedgerError
from harness.files.identity import with_private_cases
from harness.verdict import PrivateId, Verdict
from leaderboard.record import index as module
from leaderboard.record.current import Current
from leaderboard.record.entry import EVENTS, VERDICT, Entry
from leaderboard.record.fields import Facts, LastSeen, Setting, VerdictFields, fields_of
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Events, Moderation
from leaderboard.record.selection import Selection
from leaderboard.record.teams import Teams
from leaderboard.standings.ranking import Table, rank, rankings
from tests.verdicts import EPOCH, accepted, failed

TEAMS = Teams({"both": ("ada", "bob")})
RUNS = [f"{number:016x}" for number in range(1, 8)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".kernelmark/index.sqlite"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of five verdicts, with an event and an exemption."""
    ledger = JsonlLedger(tmp_path / "results/softmax.jsonl")
    for run in RUNS[:3]:
        ledger.append(accepted(run=run, score_ns=1000 + int(run, 16)))
    ledger.append(failed(run=RUNS[3]), exempt=True)
    event = Moderation(run=RUNS[0], action="disqualify", actor="grace", reason="it cheats", created_at=EPOCH)
    ledger.moderate(event)
    ledger.append(accepted(run=RUNS[4], author="bob"))
    return ledger.path


def anywhere(verdict: VerdictFields) -> VerdictFields:
    """Without the place of its line, which only the index knows."""
    return verdict._replace(start=0, length=0)


class Unindexed:
    """What the ranking asks of `Lines`, from all entries of a ledger and without the index."""

    until = None

    def __init__(self, entries: Iterable[Entry]) -> None:
        held = [*entries]
        settings: dict[Setting, Setting] = {}
        verdicts = [fields_of(entry) for entry in held if entry.kind == VERDICT]
        self.verdicts = [v._replace(setting=settings.setdefault(v.setting, v.setting)) for v in verdicts]
        self.events = [entry for entry in held if entry.kind in EVENTS]

    def moderation(self) -> Events:
        return Facts(self.events, ()).moderation()

    def selections(self) -> list[Selection]:
        return Facts(self.events, ()).selections()

    def sources(self, events: Events) -> tuple[()]:
        """No source is pooled yet."""
        return ()

    def concerned(self, events: Events) -> Iterator[VerdictFields]:
        return (verdict for verdict in self.verdicts if verdict.accepted)

    def last_seen(self) -> list[LastSeen]:
        seen: dict[int, LastSeen] = {}
        for verdict in self.verdicts:
            known = seen.get(id(verdict.setting))
            if known is None or known.at < verdict.created_at:
                seen[id(verdict.setting)] = LastSeen(verdict.setting, verdict.created_at)
        return [*seen.values()]

    def newest_of_files(self, settings: Iterable[Setting]) -> Iterator[VerdictFields]:
        wanted = {id(setting) for setting in settings}
        return (verdict for verdict in self.verdicts if id(verdict.setting) in wanted)


def believed(ledger: JsonlLedger) -> None:
    """Assert that the index has what the ledger's lines say, and nothing else."""
    entries = list(JsonlLedger(ledger.path).read())
    expected, got = Unindexed(entries), ledger.facts()
    assert [anywhere(verdict) for verdict in got.verdicts] == expected.verdicts
    assert [(e.seq, e.kind, e.document) for e in got.events] == [(e.seq, e.kind, e.document) for e in expected.events]
    for entry in entries:
        if entry.kind == VERDICT:
            assert ledger.find(entry.verdict.run) == entry.verdict
            assert next(iter(ledger.at({entry.seq}))) == entry
    ranked_alike(ledger)


def ranked_alike(ledger: JsonlLedger) -> list[Table]:
    """Assert that the ranking is the same from the index as from all lines of the ledger; returns it."""
    lines = Unindexed(JsonlLedger(ledger.path).read())
    for current in (None, Current(problems={}, protocol=1), Current(problems={"softmax": "0" * 64}, protocol=2)):
        expected = rankings(lines, current, TEAMS)  # type: ignore[arg-type]
        got = rankings(ledger, current, TEAMS)
        assert [ranking.table for ranking in got] == [ranking.table for ranking in expected]
        sources = [
            [
                [source._replace(verdict=anywhere(source.verdict)) for source in sorted(found, key=attrgetter("since"))]
                for _, found in r
            ]
            for r in (got, expected)
        ]
        assert sources[0] == sources[1]
    return rank(ledger, None, TEAMS)


def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines that are parsed from now on."""
    seen: list[int] = []

    def noted(entry: Entry, real: Callable[..., object] = fields_of) -> object:
        seen.append(entry.seq)
        return real(entry)

    monkeypatch.setattr(module, "fields_of", noted)
    return seen


def test_a_line_is_parsed_once_whatever_reads_it(path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = parsed(monkeypatch)
    believed(JsonlLedger(path, Index(file)))
    assert seen == [1, 2, 3, 5, 7]
    JsonlLedger(path).append(accepted(run=RUNS[5]))
    seen.clear()
    believed(JsonlLedger(path, Index(file)))
    assert seen == [8]


def test_no_line_is_parsed_again_since_another_is_being_written(
    path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, states = JsonlLedger(path, Index(file)), list[object]()
    ledger.facts()
    JsonlLedger(path).append(accepted(run=RUNS[5]))
    seen = parsed(monkeypatch)

    def state(file: BinaryIO, real: Callable[[BinaryIO], object] = module._state) -> object:
        states.append(real(file))
        if len(states) == 3:  # the one that is stored
            JsonlLedger(path).append(accepted(run=RUNS[6]))
        return states[-1]

    monkeypatch.setattr(module, "_state", state)
    assert len(ledger.facts().verdicts) == 7
    assert seen == [8, 9], "one is appended while the one before is read"
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:100])
    assert len(ledger.facts().verdicts) == 7
    assert seen == [8, 9], "a part of a line is there"
    believed(ledger)


def drawn(draw: random.Random) -> Verdict:
    """A verdict by one of four authors, on a few sources, devices and versions of everything that keeps times apart."""
    moment = EPOCH + timedelta(minutes=draw.randrange(200))
    author, source = draw.choice(("ada", "bob", "cyd", "eve")), f"source {draw.randrange(3)}"
    if draw.random() < 0.15:
        return failed(author=author, created_at=moment)
    middle, wide = draw.randrange(1000, 1100), draw.random() < 0.1
    verdict = accepted(
        author=author,
        source=source,
        created_at=moment,
        score_ns=middle,
        low_ns=middle // 3 if wide else None,
        high_ns=3 * middle if wide else None,
        protocol=draw.choice((1, 1, 1, 2)),
        problem_version=draw.choice("1112"),
        device_name=draw.choice(("NVIDIA H200", "NVIDIA L4")),
        sandbox=draw.choice(("docker", "docker", "process")),
        modes=draw.choice((("calls",), ("replayed",))),
        ranked_timing="replayed",
        speedups=draw.choice(({}, {"eager": 1.5})),
    )
    environment = verdict.environment.model_copy(update={"torch": draw.choice(("2.10.0", "2.11.0"))})
    problem = verdict.problem
    if draw.random() < 0.2:
        private = PrivateId(sha256="b" * 64, cases=1)
        mixed = with_private_cases(problem.sha256, private.sha256)
        problem = problem.model_copy(update={"private": private, "sha256": mixed})
    return verdict.model_copy(update={"environment": environment, "problem": problem})


def about(draw: random.Random, verdict: Verdict) -> Moderation:
    """An event about a verdict, its source or its author."""
    action, scope = (
        draw.choice(("disqualify", "reinstate", "annotate", "late")),
        draw.choice(("run", "source", "author")),
    )
    named = {"sha256": verdict.submission.sha256} if scope == "source" else {}
    named |= {"author": verdict.submission.author} if scope == "author" else {}
    event = {"action": action, "actor": "grace", "reason": "why", "created_at": EPOCH}
    return Moderation(run=verdict.run, scope=scope, **named, **event)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("events", [0.0, 0.05])
def test_the_index_ranks_as_the_whole_ledger_does(seed: int, events: float, file: Path, tmp_path: Path) -> None:
    """Whatever was appended since it was read last."""
    draw, states = random.Random(seed), set[str]()
    ledger = JsonlLedger(tmp_path / "results/softmax.jsonl", Index(file))
    for _ in range(6):
        verdicts = [drawn(draw) for _ in range(draw.choice((1, 1, 40)))]
        for verdict in verdicts:
            ledger.append(verdict)
        while draw.random() < 10 * events:
            ledger.moderate(about(draw, draw.choice(verdicts)))
        tables = ranked_alike(ledger)
        states |= {row.state for table in tables for row in (*table.rows, *table.set_aside)}
    assert states >= {"ranks", "not_replayed"}
    file.unlink()
    assert ranked_alike(ledger) == tables


def _deleted(file: Path, path: Path) -> None:
    file.unlink()


def _overwritten(file: Path, path: Path) -> None:
    file.write_bytes(os.urandom(20_000))


def _damaged(file: Path, path: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:-1] = os.urandom(len(content) - 4097)
    file.write_bytes(content)


def _of_another_version(file: Path, path: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as database:
        database.executescript("CREATE TABLE line (other TEXT); PRAGMA user_version = 7")
    database.close()


def _with_a_trigger(file: Path, path: Path) -> None:
    """Made by somebody who would be first: what is inserted is not what is kept."""
    with sqlite3.connect(file) as database:
        database.execute("CREATE TRIGGER mine AFTER INSERT ON line BEGIN UPDATE line SET median_ns = 1; END")
        database.execute("UPDATE ledger SET size = 0")
    database.close()


def another(path: Path) -> Path:
    """A ledger of the same problem with another history, of as many lines."""
    other = JsonlLedger(path.parent / "other" / path.name)
    for run in RUNS:
        other.append(accepted(run=run, author="eve"))
    return other.path


def _of_another_ledger(file: Path, path: Path) -> None:
    """The ledger was replaced, as by a checkout."""
    another(path).replace(path)


def _shorter(file: Path, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))


def _written_again(file: Path, path: Path) -> None:
    """In place, with the same size: another history."""
    size = path.stat().st_size
    with path.open("r+b") as ledger:
        ledger.write(another(path).read_bytes()[:size].ljust(size, b"x"))


def _behind(file: Path, path: Path) -> None:
    JsonlLedger(path).append(accepted(run=RUNS[6], author="eve"))


@pytest.mark.parametrize(
    "happens",
    [_deleted, _overwritten, _damaged, _of_another_version, _with_a_trigger, _of_another_ledger, _shorter,
     _written_again, _behind],
)  # fmt: skip
def test_the_ledger_decides_not_the_index(happens: Callable[[Path, Path], None], path: Path, file: Path) -> None:
    believed(JsonlLedger(path, Index(file)))
    happens(file, path)
    believed(JsonlLedger(path, Index(file)))
    believed(JsonlLedger(path, Index(file)))


def test_an_index_that_was_copied_from_another_project_is_not_believed(path: Path, file: Path, tmp_path: Path) -> None:
    believed(JsonlLedger(path, Index(file)))
    there = tmp_path / "there"
    shutil.copytree(tmp_path / ".kernelmark", there / ".kernelmark")
    ledger = JsonlLedger(there / "results/softmax.jsonl", Index(there / ".kernelmark/index.sqlite"))
    assert ledger.facts() == Facts([], [])
    ledger.append(accepted(run=RUNS[6]))
    believed(ledger)


def test_a_locked_database_is_not_waited_for(path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.05)
    believed(JsonlLedger(path, Index(file)))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    JsonlLedger(path).append(accepted(run=RUNS[6]))
    believed(JsonlLedger(path, Index(file)))
    other.execute("ROLLBACK")
    other.close()
    believed(JsonlLedger(path, Index(file)))


def test_an_index_that_cannot_be_written_is_kept_in_memory(path: Path, tmp_path: Path) -> None:
    """Root may write anywhere: something else is where the database, or its folder, should be."""
    (tmp_path / "taken").touch()
    (tmp_path / "index.sqlite").mkdir()
    for there in (tmp_path / "index.sqlite", tmp_path / "taken/index.sqlite"):
        believed(JsonlLedger(path, Index(there)))


def test_git_ignores_the_index_and_a_missing_ledger_makes_none(path: Path, file: Path) -> None:
    assert JsonlLedger(path.parent / "nothing.jsonl", Index(file)).facts() == Facts([], [])
    assert not file.parent.exists()
    JsonlLedger(path, Index(file)).facts()
    assert (file.parent / ".gitignore").read_text() == "*\n"


APPENDS = """
import os, sys
from pathlib import Path
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import accepted
ledger = JsonlLedger(Path(sys.argv[1]), Index(Path(sys.argv[2])))
for number in range(int(sys.argv[3])):
    ledger.append(accepted(run=f"{os.getpid():08x}{number:08x}"))
    ledger.facts()
"""


def test_two_processes_and_their_threads_may_use_it_at_once(path: Path, file: Path) -> None:
    others = [subprocess.Popen([sys.executable, "-c", APPENDS, path, file, "8"]) for _ in range(2)]
    index, counts = Index(file), list[int]()

    def read() -> None:
        counts.append(len(JsonlLedger(path, index).facts().verdicts))

    while any(other.poll() is None for other in others):
        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [other.returncode for other in others] == [0, 0]
    assert counts
    assert min(counts) >= 5
    believed(JsonlLedger(path, index))
    assert len(JsonlLedger(path, index).facts().verdicts) == 5 + 16


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_line_of_garbage_among_the_others_is_passed_over(at: int, path: Path, file: Path) -> None:
    before = JsonlLedger(path).facts()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:at], b"cat walked over the keyboard\n", *lines[at:]]))
    ledger = JsonlLedger(path, Index(file))
    after = ledger.facts()
    assert after.events == before.events
    assert [*map(anywhere, after.verdicts)] == [*map(anywhere, before.verdicts)]
    assert ledger.verify() == 7
    ledger.append(accepted(run=RUNS[6]))
    assert len(ledger.facts().verdicts) == 6
    assert ledger.torn_path.exists() == (at == 7), "what follows the last line is moved out of the way of the next"


@pytest.mark.parametrize(("duration_ns", "fits"), [(2**63 - 1, True), (2**63, False)])
def test_a_number_that_the_index_cannot_hold_is_an_error_of_its_line(
    duration_ns: int, fits: bool, path: Path, file: Path
) -> None:
    ledger = JsonlLedger(path)
    ledger.append(accepted(run=RUNS[5]).model_copy(update={"duration_ns": duration_ns}))
    if fits:
        assert rank(ledger)
    else:
        with pytest.raises(LedgerError, match=r"^ledger entry \d+: duration_ns: 9223372036854775808 is too large"):
            rank(ledger)


def test_a_line_that_garbage_replaced_is_missed(path: Path, file: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"garbage\n", *lines[3:]]))
    with pytest.raises(LedgerError, match=r"softmax\.jsonl line 3 is not a ledger line"):
        JsonlLedger(path, Index(file)).facts()


def test_a_file_without_any_ledger_line_is_no_ledger(path: Path) -> None:
    path.write_bytes(b"date,count\n2026-11-26,4\n")
    with pytest.raises(LedgerError, match=r"softmax\.jsonl line 1 is not a ledger line"):
        JsonlLedger(path).append(accepted(run=RUNS[6]))
    assert path.read_bytes() == b"date,count\n2026-11-26,4\n"
