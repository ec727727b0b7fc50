"""The recorder: what was graded comes into the ledger once, whichever store is older, and nothing else holds it up."""

from __future__ import annotations

import errno
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from harness.errors import LedgerError
from kernelmark.project.problems import identity
from kernelmark.server.database.tables import differing_answers, gradings, heads, submissions
from kernelmark.server.record import stores
from kernelmark.server.record.recorder import RETRY_NS, Recorder
from leaderboard.record.archive import stored as archived
from leaderboard.record.current import Current
from leaderboard.record.inspection import inspect
from leaderboard.record.ledger import JsonlLedger
from tests.unit.service.record.conftest import Stored
from tests.workers import until

RUN = "00000000000000aa"
REASON = "1 day late"


def whole(stored: Stored, slug: str = "vector_add") -> None:
    """`verify` has nothing to say of the ledger and its archive."""
    sha256 = identity(
        stored.settings, stored.root / "problems" / slug, stored.verdict(stored.submission(), RUN).created_at
    )
    now = Current(problems={slug: sha256}, protocol=1)
    assert inspect(stored.ledger(slug).path, stored.settings.locate("archive"), now).faults == []


def test_a_graded_submission_is_archived_appended_and_marked(stored: Stored) -> None:
    verdict = stored.graded()
    stored.record()
    row = stored.row(verdict.run)
    assert (row.state, row.outcome, float(row.score_s)) == ("recorded", "accepted", verdict.score.median_ns / 1e9)  # type: ignore[union-attr]
    assert (row.cursor, row.ended_ns, row.version) == (1, stored.clock.at_ns, 2)
    assert stored.recorded() == [verdict.run]
    source = archived(stored.settings.locate("archive"), "vector_add", verdict.submission)
    assert source == stored.submission()
    whole(stored)


def test_a_remark_is_written_with_the_verdict_and_is_about_its_run(stored: Stored) -> None:
    verdict = stored.graded(remark=json.dumps({"action": "late", "actor": "late policy", "reason": REASON}))
    stored.record()
    [event, line] = stored.ledger().read()
    assert (event.moderation.run, event.moderation.reason, line.verdict) == (verdict.run, REASON, verdict)


def test_a_regrade_does_not_count_towards_the_limits(stored: Stored) -> None:
    stored.graded(job_class="regrade")
    stored.record()
    assert [entry.kind for entry in stored.ledger().read()] == ["exempt", "verdict"]


@pytest.mark.parametrize("at", ["archived", "appended"])
def test_what_a_crash_left_half_done_is_finished(stored: Stored, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, recorder = stored.graded(), Recorder(stored.service)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    owner, method = (JsonlLedger, "append") if at == "archived" else (Recorder, "_mark")
    monkeypatch.setattr(owner, method, crash)
    with pytest.raises(KeyboardInterrupt):
        recorder.record_due()
    monkeypatch.undo()
    assert stored.row(verdict.run).state == "graded"
    stored.record()
    assert (stored.row(verdict.run).state, stored.recorded()) == ("recorded", [verdict.run])
    whole(stored)


def test_what_was_appended_but_not_marked_is_not_appended_again(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the database's disk is full for a while."""
    verdict, recorder = stored.graded(), Recorder(stored.service)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(stores, "mark", full)
        with pytest.raises(OSError, match="No space left"):
            recorder.record_due()
    recorder.record_due()
    assert (stored.row(verdict.run).state, stored.recorded()) == ("recorded", [verdict.run])
    whole(stored)


@pytest.mark.parametrize("state", ["queued", "leased", "graded", "cancelled", "failed"])
def test_a_run_that_the_ledger_has_is_recorded_whatever_its_state(stored: Stored, state: str) -> None:
    """The database is older than the ledger."""
    submitted = stored.submission()
    verdict = stored.verdict(submitted, RUN)
    stored.ledger().append(verdict)
    stored.add(RUN, state, submitted, verdict.to_json() if state == "graded" else None)
    stored.record()
    row = stored.row(RUN)
    assert (row.state, row.outcome, row.answer, row.charged) == ("recorded", "accepted", verdict.to_json(), True)
    assert (stored.recorded(), stored.rows(differing_answers)) == ([RUN], [])


def test_another_answer_than_the_ledgers_is_kept_aside_and_never_appended(stored: Stored) -> None:
    submitted = stored.submission()
    verdict = stored.verdict(submitted, RUN)
    stored.ledger().append(verdict)
    other = verdict.model_copy(update={"log": "another story"}).to_json()
    stored.add(RUN, "graded", submitted, other)
    stored.record()
    assert (stored.row(RUN).state, stored.row(RUN).answer) == ("recorded", verdict.to_json())
    assert [row.answer for row in stored.rows(differing_answers)] == [other]
    assert stored.recorded() == [RUN]


@pytest.mark.parametrize("gone", ["cut", "absent", "rewritten"])
@pytest.mark.parametrize("state", ["queued", "leased", "graded", "recorded", "cancelled", "failed"])
def test_a_ledger_that_lost_lines_is_not_appended_to(stored: Stored, gone: str, state: str) -> None:
    """The ledger is older than the database, or is not the one that it was."""
    first = stored.graded(0)
    stored.record()
    path = stored.ledger().path
    older = path.read_bytes()
    second = stored.graded(1)
    stored.record()
    later = stored.graded(2)
    stored.put(update(gradings).where(gradings.c.run == later.run).values(state=state))
    elsewhere = stored.graded(3, slug="softmax")
    if gone == "absent":
        path.unlink()
    elif gone == "cut":
        path.write_bytes(older)
    else:
        path.unlink()
        stored.ledger().append(first.model_copy(update={"log": "another story"}))
        stored.ledger().append(second)
    left = path.read_bytes() if path.exists() else None
    recorder = stored.record()
    assert [*recorder.problems()] == ["vector_add"]
    assert "`kernelmark repair-ledger`" in recorder.problems()["vector_add"]
    assert stored.row(later.run).state == state
    assert (path.read_bytes() if path.exists() else None) == left
    assert stored.row(elsewhere.run).state == "recorded"  # nobody else waits
    assert len(stored.rows(heads)) == 2


@pytest.mark.parametrize("state", ["queued", "leased", "graded", "cancelled", "failed"])
def test_lines_that_others_appended_stay_and_are_followed(stored: Stored, state: str) -> None:
    """The ledger is newer than the database, by other runs."""
    stored.graded(0)
    stored.record()
    other = stored.verdict(stored.submission("bob"), "b" * 16)
    stored.ledger().append(other)
    mine = stored.graded(1)
    stored.put(update(gradings).where(gradings.c.run == mine.run).values(state=state))
    recorder = stored.record()
    assert recorder.problems() == {}
    assert stored.row(mine.run).state == ("recorded" if state == "graded" else state)
    assert stored.recorded()[:2] == [f"{1:016x}", other.run]
    [head] = stored.rows(heads)
    assert head.bytes == stored.ledger().path.stat().st_size


def test_an_older_database_beside_the_ledger_goes_on(stored: Stored) -> None:
    first = stored.graded(0)
    stored.record()
    stored.close()
    copy = stored.file.with_suffix(".copy")
    shutil.copy(stored.file, copy)
    stored.open()
    second = stored.graded(1)
    stored.record()
    stored.close()
    for file in stored.file.parent.glob(f"{stored.file.name}*"):
        file.unlink()
    shutil.copy(copy, stored.file)
    stored.open()
    assert stored.record().problems() == {}
    third = stored.graded(2)
    stored.record()
    assert stored.recorded() == [first.run, second.run, third.run]


def test_a_row_that_cannot_be_recorded_holds_up_nobody_and_is_tried_again(stored: Stored) -> None:
    stuck, fine = stored.graded(0), stored.graded(1)
    folder = stored.settings.locate("archive") / "vector_add"
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder")
    recorder = stored.record()
    for run in (stuck.run, fine.run):
        assert "cannot be archived" in stored.row(run).stuck
    folder.unlink()
    recorder.record_due()
    assert stored.row(stuck.run).state == "graded"  # not yet
    recorder.record_due(again=True)
    assert [(stored.row(run).state, stored.row(run).stuck) for run in (stuck.run, fine.run)] == [("recorded", None)] * 2


def test_one_row_that_cannot_be_archived_does_not_stop_those_after_it(stored: Stored) -> None:
    stuck, fine = stored.graded(0), stored.graded(1)
    path = stored.settings.locate("archive") / "vector_add/ada"
    stored.record()
    held = next(
        file
        for file in path.iterdir()
        if archived(path.parents[1], "vector_add", stuck.submission).source == file.read_bytes()
    )
    stored.put(update(gradings).values(state="graded"))
    stored.ledger().path.unlink()
    stored.put(heads.delete())
    held.write_text("something else")
    stored.record()
    assert [stored.row(run).state for run in (stuck.run, fine.run)] == ["graded", "recorded"]
    assert "holds something other" in stored.row(stuck.run).stuck


@pytest.mark.parametrize(
    "broken", [{"answer": "{}"}, {"answer": None}, {"remark": "[1]"}], ids=lambda values: next(iter(values))
)
def test_a_row_of_nonsense_holds_up_nobody(stored: Stored, broken: dict[str, Any]) -> None:
    stuck, fine = stored.graded(0), stored.graded(1)
    table = submissions if "remark" in broken else gradings
    stored.put(update(table).where(table.c.run == stuck.run).values(broken))
    stored.record()
    assert [stored.row(run).state for run in (stuck.run, fine.run)] == ["graded", "recorded"]
    assert stored.row(stuck.run).stuck


def test_the_thread_compares_first_then_records_and_retries_each_minute(stored: Stored) -> None:
    verdict = stored.graded()
    folder = stored.settings.locate("archive") / "vector_add"
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder")
    recorder = Recorder(stored.service)
    recorder.start()
    try:
        assert recorder.ready.wait(30)
        until(lambda: stored.row(verdict.run).stuck is not None)
        folder.unlink()
        stored.clock.at_ns += RETRY_NS
        recorder.due()
        until(lambda: stored.row(verdict.run).state != "graded")
        assert recorder.problems() == {}
    finally:
        recorder.close()
        recorder.close()
    assert "kernel.py" in next(stored.root.glob("leaderboard/**/vector_add.md")).read_text()


def test_what_is_graded_when_it_is_closed_is_recorded(stored: Stored) -> None:
    recorder = Recorder(stored.service)
    recorder.start()
    assert recorder.ready.wait(30)
    verdict = stored.graded()
    recorder.close()
    assert stored.row(verdict.run).state == "recorded"
    assert recorder.problems() == {"": "the recorder has ended"}


def test_a_ledger_says_what_is_there_under_the_lock_of_the_append(stored: Stored, tmp_path: Path) -> None:
    verdict = stored.verdict(stored.submission(), RUN)
    ledger = stored.ledger()
    first = ledger.append(verdict, unless_run=True)
    head = ledger.head()
    assert head is not None
    assert (head.seq, head.sha256, head.bytes) == (1, first.hash, ledger.path.stat().st_size)
    other = verdict.model_copy(update={"log": "another story"})
    assert ledger.append(other, unless_run=True).document == verdict.to_json().encode()
    assert ledger.head() == head
    later = verdict.model_copy(update={"run": "c" * 16, "created_at": verdict.created_at + timedelta(seconds=1)})
    ledger.append(later, unless_run=True, head=head)
    assert ledger.append(later, unless_run=True, head=head).seq == 2  # found after the head
    ledger.refuse_another(head)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-1])
    ledger.refuse_another(head)  # the unfinished line is after it
    for content in (b"", ledger.path.read_bytes()[: head.bytes - 2]):
        ledger.path.write_bytes(content)
        with pytest.raises(LedgerError, match="was changed: line 1 no longer ends at byte"):
            ledger.append(later, unless_run=True, head=head)
        assert ledger.path.read_bytes() == content
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="is gone"):
        ledger.append(later, head=head)
    assert not ledger.path.exists()
