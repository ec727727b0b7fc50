"""Selections over the network: the server sets the author, and tells nothing of others' runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kernelmark.server.database.tables import accounts
from kernelmark.server.record import selecting
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.selection import Selection
from tests.unit.service.record.conftest import Stored
from tests.unit.service.record.test_public import client

FIRST, SECOND, THIRD, BOBS = (f"{number:016x}" for number in range(1, 5))
UNKNOWN = "f" * 16


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    with closing(Stored(tmp_path / "project", "selection = 2\n")) as made:
        yield made


@pytest.fixture
def ada(stored: Stored) -> TestClient:
    """Ada, who has three recorded runs; bob has one."""
    asks = client(stored, "ada")
    for number in range(4):
        stored.graded(number, author="bob" if number == 3 else "ada")
    stored.record()
    return asks


def select(asks: TestClient, *runs: str) -> Any:
    return asks.put("/api/v1/selection", json={"runs": runs})


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].removeprefix("urn:kernelmark:")


def selections(stored: Stored) -> list[Selection]:
    return [entry.selection for entry in stored.ledger().entries() if entry.kind == "selection"]


def test_an_account_selects_its_own_runs_and_the_server_sets_the_author(stored: Stored, ada: TestClient) -> None:
    answer = select(ada, SECOND, FIRST)
    assert answer.json() == {"author": "ada", "runs": [SECOND, FIRST], "sources": 2, "warnings": []}
    [made] = selections(stored)
    assert (made.author, made.runs) == ("ada", (SECOND, FIRST))
    assert refused(ada.put("/api/v1/selection", json={"runs": [FIRST], "author": "bob"})) == (422, "unknown-field")
    stored.graded(9)
    stored.record()
    assert stored.recorded()[-1] == f"{10:016x}", "what is recorded later follows it"
    team = {"team": "quick"}
    stored.put(accounts.update().values(team))
    assert select(ada, BOBS).status_code == 200, "of the team"


def test_what_may_not_be_selected_changes_nothing(stored: Stored, ada: TestClient) -> None:
    others, unknown = select(ada, FIRST, BOBS), select(ada, FIRST, UNKNOWN)
    assert refused(others) == refused(unknown) == (404, "no-such-run")
    assert others.text.replace(BOBS, UNKNOWN) == unknown.text
    assert refused(select(ada, FIRST, SECOND, THIRD)) == (409, "selection")
    assert refused(select(client(stored), FIRST)) == (401, "unauthenticated")
    problem = stored.root / "problems/vector_add/problem.toml"
    task = problem.read_text()
    problem.write_text(f"deadline = {(datetime.now(UTC) - timedelta(hours=1)).isoformat()}\n{task}")
    assert "is closed since" in select(ada, FIRST).json()["title"]
    problem.write_text(task)
    stored.service.project.settings = stored.settings.model_copy(update={"selection": None})
    assert refused(select(ada, FIRST)) == (409, "no-selection")
    assert selections(stored) == []


def test_a_run_is_looked_up_once(stored: Stored, ada: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up, runs = list[str](), JsonlLedger.runs
    monkeypatch.setattr(JsonlLedger, "runs", lambda ledger, run: looked_up.append(run) or runs(ledger, run))
    assert select(ada, SECOND, FIRST).status_code == 200
    assert looked_up == [SECOND, FIRST]


def test_selections_a_day_are_limited(stored: Stored, ada: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selecting, "_MOST_A_DAY", 1)
    assert select(ada, FIRST).status_code == 200
    assert refused(select(ada, SECOND)) == (429, "limit-reached")


def test_nothing_is_selected_in_a_ledger_that_was_replaced(stored: Stored, ada: TestClient) -> None:
    before = stored.ledger().path.read_bytes()
    assert select(ada, FIRST).status_code == 200
    stored.ledger().path.write_bytes(before)  # an older copy
    assert select(ada, SECOND).status_code == 503
    assert stored.ledger().path.read_bytes() == before
