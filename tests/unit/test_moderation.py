"""Moderation: what events do to the standings, that the last one wins, and that nothing is ever rewritten."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.verdict import Verdict
from kernelmark.text.standings import standing
from leaderboard.publishing.markdown import board
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Action, Moderation, Scope
from leaderboard.standings.gradings import moderation
from leaderboard.standings.ranking import Table, rank
from tests.documents import items
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
def test_an_event_names_what_it_is_about(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="an event about a source names its sha256"):
        Moderation.model_validate({**json.loads(event(FAST.run, "disqualify").to_json()), **wrong})


def test_last_means_by_the_chain_and_not_by_a_clock_or_the_order_of_reading() -> None:
    entries = chained(*RUNS, event(FAST.run, "reinstate", hours=5), event(FAST.run, "disqualify", hours=1))
    expected = rank(entries)
    assert [run.state for run in expected[0].set_aside] == ["disqualified"]
    random.Random(3).shuffle(entries)
    assert rank(entries) == expected
    assert rank(iter(entries)) == expected, "what can be walked only once ranks the same"


def test_a_table_of_nothing_but_disqualified_runs_says_so() -> None:
    (table,) = rank(chained(*RUNS, *(event(verdict.run, "disqualify") for verdict in RUNS)))
    assert (table.rows, len(table.set_aside)) == ((), 3)
    assert board([table]).count("| disqualified |") == 3


def test_rows_and_json_carry_the_state_and_what_was_said() -> None:
    (table,) = rank(
        chained(*RUNS, event(FAST.run, "disqualify", "reads the clock"), event(BOB.run, "annotate", "neat"))
    )
    document = json.loads(table.model_dump_json())
    assert document["rows"][0]["state"] == "ranks"
    assert [each["reason"] for each in document["rows"][0]["moderation"]] == ["neat"]
    assert document["set_aside"][0]["state"] == "disqualified"
    assert document["set_aside"][0]["moderation"][0]["actor"] == "grace"
    assert Table.model_validate(document) == table


def test_the_board_shows_state_beside_the_ranks_and_escapes_it() -> None:
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
    said = command("moderate", "disqualify", "aaaa", "--actor", "grace", "--reason", "reads the clock")
    assert said.code == 0
    assert said.out.startswith(FAST.run + "\n")
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
def test_what_cannot_be_moderated_is_one_line(
    ledger: JsonlLedger, command: Command, run: str, actor: str, reason: str, message: str
) -> None:
    before = ledger.path.read_bytes()
    said = command("moderate", "annotate", run, "--actor", actor, "--reason", reason)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert message in said.err
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


def test_the_commands_speak_of_a_source_and_of_an_author(
    ledger: JsonlLedger, command: Command, competition: Path
) -> None:
    other = JsonlLedger(competition / "leaderboard/results/gelu.jsonl")
    other.append(accepted(run="f" * 16, author="eve", problem="gelu"))
    said = command("moderate", "disqualify", "aaaa", "--source", "--actor", "grace", "--reason", "reads the clock")
    assert said.code == 0
    assert "every run of this source: reads the clock (grace" in said.out
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
