"""Moderation: the effect of events on the standings; the last one wins, and nothing is rewritten."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.verdict import Verdict
from kernelmark.text.standings import standing
from leaderboard.publishing.markdown import board
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Action, Moderation, Scope
from leaderboard.standings.gradings import moderation
from tests.documents import items
from tests.ranked import rank
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted, chained, failed

RUNS = FAST, SLOW, BOB = (
    accepted(run="a" * 16, score_ns=1000),
    accepted(run="b" * 16, score_ns=3000, source="another"),
    accepted(run="c" * 16, score_ns=2000, author="bob"),
)


def event(run: str, action: Action, reason: str = "why", hours: int = 0) -> Moderation:
    return Moderation(run=run, action=action, actor="grace", reason=reason, created_at=EPOCH + timedelta(hours=hours))


def about(verdict: Verdict, scope: Scope, action: Action = "disqualify", reason: str = "why") -> Moderation:
    """An event about the source or the author of a run."""
    named = {
        "source": {"sha256": verdict.submission.sha256},
        "author": {"author": verdict.submission.author},
        "run": {},
    }
    return Moderation(
        run=verdict.run, action=action, scope=scope, actor="grace", reason=reason, created_at=EPOCH, **named[scope]
    )


def standings(*events: Moderation) -> tuple[list[tuple[int, str, str]], list[tuple[str, str]]]:
    (table,) = rank(chained(*RUNS, *events))
    return [(r.rank, r.author, r.run[0]) for r in table.rows], [(r.run[0], r.state) for r in table.set_aside]


BEFORE = [(1, "ada", "a"), (2, "bob", "c")]
AFTER = [(1, "bob", "c"), (2, "ada", "b")]


@pytest.mark.parametrize(
    ("actions", "rows", "aside"),
    [
        ((), BEFORE, []),
        (("disqualify",), AFTER, [("a", "disqualified")]),
        (("late",), AFTER, [("a", "late")]),
        (("annotate",), BEFORE, []),
        (("disqualify", "reinstate"), BEFORE, []),
        (("late", "reinstate"), BEFORE, []),
        (("reinstate", "disqualify"), AFTER, [("a", "disqualified")]),
        (("disqualify", "annotate"), AFTER, [("a", "disqualified")]),
        (("disqualify", "reinstate", "disqualify"), AFTER, [("a", "disqualified")]),
    ],
)
def test_the_last_event_that_decides_wins(
    actions: tuple[Action, ...], rows: list[tuple[int, str, str]], aside: list[tuple[str, str]]
) -> None:
    assert standings(*(event(FAST.run, action) for action in actions)) == (rows, aside)


COPY = accepted(run="d" * 16, score_ns=500, author="eve", source="# ada")
LATER = accepted(run="e" * 16, score_ns=400, created_at=EPOCH + timedelta(days=1), source="a third")


@pytest.mark.parametrize(
    ("events", "aside"),
    [
        pytest.param([], "", id="without"),
        pytest.param([about(FAST, "source")], "da", id="a source, whoever hands it in, later ones too"),
        pytest.param([about(FAST, "author")], "eab", id="an author, whatever they hand in, later ones too"),
        pytest.param([about(FAST, "author"), event(SLOW.run, "reinstate")], "ea", id="one run of theirs again"),
        pytest.param([event(SLOW.run, "reinstate"), about(FAST, "author")], "eab", id="the last one wins"),
        pytest.param([about(FAST, "author"), about(FAST, "author", "reinstate")], "", id="all of them again"),
        pytest.param([about(FAST, "source"), about(COPY, "author", "reinstate")], "a", id="one who may"),
        pytest.param([event(FAST.run, "late"), about(FAST, "author", "reinstate")], "", id="late ones too"),
    ],
)
def test_events_about_a_source_or_an_author(events: list[Moderation], aside: str) -> None:
    (table,) = rank(chained(*RUNS, *events, COPY, LATER))  # the last two were submitted after all that was said
    found = {run.run[0]: run for run in table.set_aside}
    assert sorted(found) == sorted(aside)
    assert all(run.state != "ranks" for run in table.set_aside)
    # Of ada's sources only the best has a row.
    authors = {"a": "ada", "b": "ada", "c": "bob", "d": "eve", "e": "ada"}
    expected = {min((r for r in "edcab" if authors[r] == who and r not in aside), key="edacb".index, default="")
                for who in ("ada", "bob", "eve")} - {""}  # fmt: skip
    assert {row.run[0] for row in table.rows} == expected
    for run in table.set_aside:
        assert run.moderation[-1] in events, "it says why"


def test_an_event_about_a_run_is_written_as_before_scopes_and_old_lines_are_read() -> None:
    old = (
        '{"schema_version":1,"run":"aaaaaaaaaaaaaaaa","action":"disqualify","actor":"grace","reason":"why",'
        '"created_at":"2026-01-01T00:00:00Z"}'
    )
    assert Moderation.model_validate_json(old).to_json() == old == event(FAST.run, "disqualify").to_json()
    scoped = about(FAST, "source")
    assert Moderation.model_validate_json(scoped.to_json()) == scoped
    assert json.loads(scoped.to_json())["scope"] == "source"


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "source"},
        {"scope": "author"},
        {"author": "ada"},
        {"scope": "author", "author": "a", "sha256": "0" * 64},
    ],
)
def test_an_event_names_its_source_or_author(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="an event about a source names its sha256"):
        Moderation.model_validate({**json.loads(event(FAST.run, "disqualify").to_json()), **wrong})


def test_the_order_of_events_is_that_of_the_ledger_and_not_of_their_times() -> None:
    entries = chained(*RUNS, event(FAST.run, "reinstate", hours=5), event(FAST.run, "disqualify", hours=1))
    (table,) = rank(entries)
    assert [run.state for run in table.set_aside] == ["disqualified"]


def test_a_table_of_nothing_but_disqualified_runs_says_so() -> None:
    (table,) = rank(chained(*RUNS, *(event(verdict.run, "disqualify") for verdict in RUNS)))
    assert (table.rows, len(table.set_aside)) == ((), 3)
    assert board([table]).count("| disqualified |") == 3


def test_the_board_shows_and_escapes_the_state_of_runs() -> None:
    text = board(rank(chained(*RUNS, event(FAST.run, "disqualify", "<b>|x"), event(BOB.run, "annotate", "a|b"))))
    rows = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len(rows) == 1
    assert "| bob |" in rows[0]
    assert "annotate: a&#124;b (grace)" in rows[0]
    (aside,) = (line for line in text.splitlines() if line.startswith("| disqualified |"))
    assert "disqualify: &lt;b&gt;&#124;x (grace)" in aside


def test_an_event_of_an_unknown_run_changes_nothing() -> None:
    assert standings(event("d" * 16, "disqualify"))[0] == BEFORE


@pytest.fixture
def ledger(competition: Path) -> JsonlLedger:
    found = JsonlLedger(competition / "leaderboard/results/softmax.jsonl")
    for verdict in (FAST, SLOW, BOB, failed(run="ab" + "0" * 14)):
        found.append(verdict)
    return found


def test_the_commands_append_and_the_board_follows(ledger: JsonlLedger, command: Command, competition: Path) -> None:
    before = ledger.path.read_bytes()
    result = command("moderate", "disqualify", "aaaa", "--actor", "grace", "--reason", "reads the clock")
    assert result.code == 0
    assert result.out.startswith(FAST.run + "\n")
    assert ledger.path.read_bytes().startswith(before)
    assert ledger.verify() == 5
    markdown = (competition / "leaderboard/BOARD.md").read_text()
    assert "| disqualified | ada |" in markdown
    assert f"{FAST.run} by ada (disqualified): disqualify: reads the clock" in command("board", "softmax").out
    shown = command("show", FAST.run).out
    assert "state       disqualified" in shown
    assert "reads the clock (grace, " in shown
    (table,) = items(command("board", "--format", "json").out)
    assert [run["state"] for run in table["set_aside"]] == ["disqualified"]

    assert command("moderate", "reinstate", "aaaa", "--actor", "grace", "--reason", "it does not").code == 0
    assert [e.action for e in moderation(ledger.facts(), FAST)] == ["disqualify", "reinstate"]
    assert "| 1 | ada |" in (competition / "leaderboard/BOARD.md").read_text()


@pytest.mark.parametrize(
    ("run", "actor", "reason", "message"),
    [
        ("dddd", "grace", "why", "run dddd was never recorded here"),
        ("a", "grace", "why", "give more digits"),
        ("", "grace", "why", "run '' is not a run id"),
        ("aaaa", "", "why", "--actor is not valid"),
        ("aaaa", "grace", "", "--reason is not valid"),
        ("aaaa", "grace", "\udcff", "--reason is not valid"),
    ],
)
def test_a_moderation_that_is_impossible_gets_one_line(
    ledger: JsonlLedger, command: Command, run: str, actor: str, reason: str, message: str
) -> None:
    before = ledger.path.read_bytes()
    result = command("moderate", "annotate", run, "--actor", actor, "--reason", reason)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert message in result.err
    assert ledger.path.read_bytes() == before


def test_a_ledger_takes_no_event_of_a_run_that_it_does_not_hold(ledger: JsonlLedger) -> None:
    with pytest.raises(UsageError, match="no run in"):
        ledger.moderate(event("e" * 16, "disqualify"))


def test_a_late_verdict_is_never_there_without_its_event(ledger: JsonlLedger) -> None:
    late = accepted(run="f" * 16, author="eve")
    ledger.append(late, event(late.run, "late"))
    first, second = list(ledger.read())[-2:]
    assert (first.kind, second.kind) == ("moderation", "verdict"), "a crash between the two leaves no ranked run"
    (table,) = rank(ledger.read())
    assert [run.author for run in table.set_aside] == ["eve"]


def test_moderation_of_a_source_or_an_author(ledger: JsonlLedger, command: Command, competition: Path) -> None:
    other = JsonlLedger(competition / "leaderboard/results/gelu.jsonl")
    other.append(accepted(run="f" * 16, author="eve", problem="gelu"))
    result = command("moderate", "disqualify", "aaaa", "--source", "--actor", "grace", "--reason", "reads the clock")
    assert result.code == 0
    assert "every run of this source: reads the clock (grace" in result.out
    ledger.append(COPY)
    shown = command("show", COPY.run).out
    assert "state       disqualified" in shown
    assert "every run of this source: reads the clock (grace" in shown
    assert (
        f"{COPY.run} by eve (disqualified): disqualify: every run of this source: reads the clock"
        in command("board", "softmax").out
    )
    assert other.verify() == 1, "a source is disqualified on its problem"

    assert command("moderate", "disqualify", "c", "--author", "--actor", "grace", "--reason", "two accounts").code == 0
    late = accepted(run="9" * 16, author="bob", problem="gelu")
    other.append(late)
    tables = items(command("board", "--format", "json").out)
    aside = {run["run"][0]: run["moderation"][-1]["reason"] for table in tables for run in table["set_aside"]}
    assert aside == {"a": "reads the clock", "d": "reads the clock", "c": "two accounts", "9": "two accounts"}
    markdown = (competition / "leaderboard/BOARD.md").read_text()
    assert "disqualify: every run of this author: two accounts (grace)" in markdown
    assert command("verify").out.count("moderates run") == 0, "an author's event stands in every ledger"

    assert command("moderate", "reinstate", "9999", "--actor", "grace", "--reason", "not bob's").code == 0
    tables = items(command("board", "--format", "json").out)
    assert {run["run"][0] for table in tables for run in table["set_aside"]} == {"a", "d", "c"}
    both = command("moderate", "disqualify", "c", "--author", "--source", "--actor", "g", "--reason", "why")
    assert (both.code, both.err.count("\n")) == (2, 1)
    assert command("moderate", "annotate", "c", "--author", "--actor", "g", "--reason", "why").code == 2


def test_standing_says_that_a_source_that_was_disqualified_does_not_rank(ledger: JsonlLedger) -> None:
    ledger.append(COPY)
    ledger.moderate(about(FAST, "source"))
    (table,) = rank(ledger.read())
    assert standing(COPY, table) == "none: it is disqualified, and does not rank (every run of this source: why)"


def undoing(event: Moderation, reason: str = "a mistake") -> Moderation:
    return event.model_copy(update={"action": "undo", "undoes": event.id, "reason": reason})


def test_an_event_that_was_undone_counts_no_more_until_that_is_undone() -> None:
    out, note = event(FAST.run, "disqualify"), event(BOB.run, "annotate", "neat")
    assert standings(out, undoing(out)) == (BEFORE, [])
    assert standings(out, undoing(out), undoing(undoing(out))) == (AFTER, [("a", "disqualified")])
    again = event(FAST.run, "disqualify", "again", hours=3)
    assert standings(out, again, undoing(out)) == (AFTER, [("a", "disqualified")]), "the other one still counts"
    back = event(FAST.run, "reinstate")
    assert standings(out, back, undoing(back)) == (AFTER, [("a", "disqualified")])
    everyone = about(FAST, "author")
    assert standings(everyone, undoing(everyone)) == (BEFORE, [])
    (table,) = rank(chained(*RUNS, note, undoing(note)))
    assert [row.moderation for row in table.rows] == [(), ()], "the board no longer shows it"


@pytest.mark.parametrize("wrong", [{"action": "undo"}, {"undoes": "a" * 16}, {"action": "undo", "undoes": "b"}])
def test_only_undo_events_name_another_event(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="undoes"):
        Moderation.model_validate({**json.loads(event(FAST.run, "disqualify").to_json()), **wrong})


SAID = ("--actor", "grace", "--reason", "why")


def listed(command: Command, *arguments: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(command("moderate", "list", *arguments, "--format", "json").out)["items"]
    return items


def test_several_runs_are_moderated_at_once_or_none(ledger: JsonlLedger, command: Command) -> None:
    wrong = command("moderate", "disqualify", "aaaa", "dddd", *SAID)
    assert (wrong.code, ledger.verify()) == (2, 4), "one of them is unknown"
    result = command("moderate", "disqualify", "aaaa", "c", "aaaa", *SAID)
    assert (result.code, ledger.verify()) == (0, 6)
    assert [line for line in result.out.splitlines() if not line.startswith(" ")] == [FAST.run, BOB.run]
    assert {run.run for table in rank(ledger.read()) for run in table.set_aside} == {FAST.run, BOB.run}


def test_a_repeated_event_is_not_recorded_again(ledger: JsonlLedger, command: Command) -> None:
    other = JsonlLedger(ledger.path.with_name("gelu.jsonl"))
    command("moderate", "disqualify", "aaaa", *SAID)
    [first] = listed(command)
    twice = command("moderate", "disqualify", "aaaa", "--actor", "bob", "--reason", "also")
    assert (twice.code, ledger.verify()) == (0, 5)
    assert f"note: {FAST.run} is disqualified already, by event {first['id']} of grace (why); nothing was" in twice.err
    assert command("moderate", "disqualify", "aaaa", "--author", *SAID).err == "", "that says more"
    other.append(accepted(run="9" * 16, author="ada", problem="gelu"))
    assert command("moderate", "disqualify", "aaaa", "--author", *SAID).err == ""
    assert (ledger.verify(), other.verify()) == (6, 2), "it is new to one ledger"
    command("moderate", "reinstate", "bbbb", *SAID)
    assert command("moderate", "disqualify", "aaaa", "--author", *SAID).err == "", "it is about that run again"
    note = ("moderate", "annotate", "aaaa", "--actor", "grace", "--reason")
    assert [command(*note, text).err.count("already") for text in ("neat", "fast", "neat")] == [0, 0, 1]
    assert "moderates run" not in command("verify").out


def test_an_event_is_listed_and_undone_by_its_id(ledger: JsonlLedger, command: Command, competition: Path) -> None:
    other = JsonlLedger(ledger.path.with_name("gelu.jsonl"))
    other.append(accepted(run="9" * 16, author="ada", problem="gelu"))
    assert command("moderate", "list").out == "nothing was moderated\n"
    command("moderate", "disqualify", "aaaa", "--author", "--actor", "grace", "--reason", "two accounts")
    [event] = listed(command)
    assert (event["problems"], event["undone_by"], event["event"]["author"]) == (["gelu", "softmax"], "", "ada")
    before = ledger.path.read_bytes()
    result = command("moderate", "undo", event["id"][:8], "--actor", "bob", "--reason", "a mix-up")
    assert result.code == 0, result.err
    assert ledger.path.read_bytes().startswith(before), "nothing is removed"
    assert (ledger.verify(), other.verify()) == (6, 3)
    assert "moderates run" not in command("verify").out
    assert not [run for each in (ledger, other) for table in rank(each.read()) for run in table.set_aside]
    assert "two accounts" not in (competition / "leaderboard/BOARD.md").read_text()
    out, undone = listed(command, "softmax")
    assert (out["undone_by"], undone["event"]["undoes"]) == (undone["id"], out["id"])
    shown = command("show", FAST.run).out
    assert "state       ranks" in shown
    assert f"event {out['id'][:8]}; undone by {undone['id'][:8]}" in shown
    assert f"a mix-up (bob, {EPOCH:%Y}"[:-4] in shown
    table = command("moderate", "list").out
    assert "author ada" in table
    assert f"event {out['id'][:8]}" in table

    twice = command("moderate", "undo", event["id"], *SAID)
    assert (twice.code, ledger.verify()) == (0, 6)
    assert f"is undone already, by event {undone['id']}" in twice.err
    command("moderate", "undo", undone["id"], *SAID)
    assert {run.run[0] for table in rank(ledger.read()) for run in table.set_aside} == {"a", "b"}


def test_an_undo_that_was_killed_is_finished_by_the_next(
    ledger: JsonlLedger, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = JsonlLedger(ledger.path.with_name("gelu.jsonl"))
    other.append(accepted(run="9" * 16, author="ada", problem="gelu"))
    command("moderate", "disqualify", "aaaa", "--author", *SAID)
    [event] = listed(command)
    undo = ("moderate", "undo", event["id"], *SAID)
    append = JsonlLedger.moderate

    def killed(appended: JsonlLedger, event: Moderation) -> Any:
        if appended.path == ledger.path:
            raise KeyboardInterrupt
        return append(appended, event)

    with monkeypatch.context() as patch:
        patch.setattr(JsonlLedger, "moderate", killed)
        assert command(*undo).code == 130
    out, half = listed(command)
    assert (out["undone_by"], half["problems"]) == ("", ["gelu"]), "it is in force in the other ledger"
    result = command(*undo)
    assert (result.code, ledger.verify(), other.verify()) == (0, 6, 3)
    assert f"was undone only in part, by event {half['id']}; this undoes it in softmax, too" in result.err
    out, whole = listed(command)
    assert (out["undone_by"], whole["problems"]) == (half["id"], ["gelu", "softmax"]), "one event undoes it everywhere"
    assert not [run for each in (ledger, other) for table in rank(each.read()) for run in table.set_aside]

    def half_undone(id_: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(JsonlLedger, "moderate", killed)
            assert command("moderate", "undo", id_, *SAID).code == 130

    half_undone(whole["id"])  # the event is in force in gelu again, and undone in softmax
    assert "undone only in part" in command(*undo).err
    assert (ledger.verify(), other.verify()) == (6, 5)
    assert not [run for each in (ledger, other) for table in rank(each.read()) for run in table.set_aside]


@pytest.mark.parametrize(
    ("event", "message"),
    [("ffff", "event 'ffff' was never recorded here"), ("", "event '' was never"), ("late", "says how late a run was")],
)
def test_impossible_undo_gets_one_line(ledger: JsonlLedger, command: Command, event: str, message: str) -> None:
    late = accepted(run="f" * 16, author="eve")
    remark = Moderation(run=late.run, action="late", actor="x", reason="1 day late", created_at=EPOCH)
    ledger.append(late, remark)
    result = command("moderate", "undo", remark.id if event == "late" else event, *SAID)
    assert (result.code, result.err.count("\n"), ledger.verify()) == (2, 1, 6)
    assert message in result.err


def test_annotating_says_where_the_annotation_is_shown(ledger: JsonlLedger, command: Command) -> None:
    on_board = command("moderate", "annotate", "aaaa", *SAID)
    assert "shown to    everyone: on the board, on the site, and by `kernelmark show`" in on_board.out
    failed_run = command("moderate", "annotate", "ab", *SAID)
    assert "shown to    only those who use `kernelmark show`; no row of the board is about it" in failed_run.out
