"""What everybody may see: as the commands print it, and nothing of what is frozen, hidden or not published yet."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import insert
from starlette.testclient import TestClient

from kernelmark.server.accounts import tokens
from kernelmark.server.accounts.principal import SCOPES
from kernelmark.server.app import create_app
from kernelmark.server.database.tables import accounts, facts
from kernelmark.server.record.recorder import Recorder
from kernelmark.service.accounts import AccountRole
from leaderboard.record.moderation import Moderation
from tests.documents import valid
from tests.service_fixtures import PROBLEM
from tests.unit.conftest import Command
from tests.unit.service.record.conftest import NOW_NS, Stored
from tests.verdicts import failed

SECRET_SIZE, SECRET_SOURCE = "31337", "secret_trick"
COMPARED = "the ledgers are being compared with the database"


class Course(NamedTuple):
    """A problem with hidden tests, whose sources and newest results are shown once it is closed."""

    stored: Stored
    before: str
    """A run from before the board was frozen; `SECRET_SOURCE` is in its log and traceback."""
    frozen: str


@pytest.fixture
def course(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Course]:
    """Its parameter says whether it is closed."""
    with closing(Stored(tmp_path / "project", problems=())) as stored:
        now = datetime.now(UTC)
        deadline = now - timedelta(minutes=1) if getattr(request, "param", "") == "closed" else now + timedelta(hours=1)
        rules = f'deadline = {deadline.isoformat()}\nfreeze = "2h"\nvisibility = "after_deadline"\n'
        folder = stored.root / "problems/twice"
        folder.mkdir(parents=True)
        (folder / "problem.toml").write_text(rules + PROBLEM.replace("n = 31 ", f"n = {SECRET_SIZE} "))
        (folder / "reference.py").write_text("def reference(x):\n    return x + x\n")
        stored.service.files.refresh(stored.service.database)
        submitted = stored.submission()
        told = {"log": f"{SECRET_SOURCE} in the log", "traceback": f"{SECRET_SOURCE} in the traceback"}
        for run, age in (("a" * 16, timedelta(days=2)), ("b" * 16, timedelta(0))):
            verdict = stored.verdict(submitted, run, "twice", created_at=now - age)
            stored.ledger("twice").append(verdict.model_copy(update=told))
        wrong = failed(submission=submitted, run="c" * 16, problem="twice", created_at=now - timedelta(days=2))
        stored.ledger("twice").append(wrong.model_copy(update=told))
        yield Course(stored, "a" * 16, "b" * 16)


def client(stored: Stored, name: str | None = None, role: AccountRole = "participant") -> TestClient:
    """Who asks: nobody, or somebody with a token."""
    headers = {}
    if name is not None:
        fields = {"name": name, "folded": name, "role": role, "state": "active", "created_ns": NOW_NS}

        def change(connection: Any) -> str:
            account = connection.execute(insert(accounts).values(**fields)).inserted_primary_key[0]
            return tokens.make(connection, NOW_NS, "client", account=account, scopes=SCOPES[role])

        headers = {"Authorization": f"Bearer {stored.service.database.write(change).result()}"}
    app = create_app(stored.service, Recorder(stored.service))
    return TestClient(app, base_url=stored.service.url, headers=headers)


def crawled(course: Course, asked: TestClient) -> str:
    """All that the public routes answer, and all that others answer to a visitor's GET."""
    names = {"slug": ["twice", "none"], "run": [course.before, course.frozen, "c" * 16, "d" * 16]}
    texts = list[str]()
    for route in asked.app.openapi()["paths"]:  # type: ignore[attr-defined]
        filled = [route.replace("{slug}", slug).replace("{run}", run) for slug in names["slug"] for run in names["run"]]
        for path in dict.fromkeys(re.sub(r"\{.*?\}", "1", each) for each in filled):
            answer = asked.get(path)
            assert answer.status_code < 500 or path == "/health/ready", path
            texts.append(f"{path} {answer.headers} {answer.text}")
    return "\n".join(texts)


@pytest.mark.parametrize("who", ["visitor", "rival"])
def test_what_is_frozen_hidden_or_not_published_is_told_by_no_route(course: Course, who: str) -> None:
    told = crawled(course, client(course.stored, None if who == "visitor" else "bob"))
    assert course.before in told
    assert SECRET_SOURCE not in told
    assert SECRET_SIZE not in told
    assert str(course.stored.root) not in told
    frozen = client(course.stored, None if who == "visitor" else "cyd").get(f"/api/v1/runs/{course.frozen}")
    unknown = client(course.stored).get(f"/api/v1/runs/{'d' * 16}")
    assert frozen.status_code == unknown.status_code == 404
    assert frozen.text.replace(course.frozen, "") == unknown.text.replace("d" * 16, "")
    boards = json.loads(client(course.stored).get("/api/v1/boards/twice").text)["items"]
    assert [row["run"] for table in boards for row in table["rows"]] == [course.before]


@pytest.mark.parametrize("course", ["closed"], indirect=True)
@pytest.mark.parametrize("who", ["visitor", "rival"])
def test_once_it_is_closed_all_but_hidden_sizes_is_shown(course: Course, who: str) -> None:
    told = crawled(course, client(course.stored, None if who == "visitor" else "bob"))
    assert course.frozen in told
    assert SECRET_SOURCE in told
    assert SECRET_SIZE not in told


def test_a_worker_with_an_authors_name_sees_what_a_visitor_sees(course: Course) -> None:
    named = course.stored.service.database.write(lambda c: tokens.make(c, NOW_NS, "worker", worker="ada")).result()
    asked = client(course.stored)
    asked.headers["Authorization"] = f"Bearer {named}"
    assert asked.get(f"/api/v1/runs/{course.frozen}").status_code == 404
    assert SECRET_SOURCE not in asked.get(f"/api/v1/runs/{course.before}").text


def test_ones_own_runs_and_those_who_assist_see_all_of_them(course: Course) -> None:
    roles: dict[str, AccountRole] = {"ada": "participant", "eve": "assistant"}
    for name, role in roles.items():
        answer = client(course.stored, name, role).get(f"/api/v1/runs/{course.frozen}")
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "private, no-store")
        assert SECRET_SOURCE in answer.text


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("problems/vector_add", ("problems", "show", "vector_add")),
        ("boards/vector_add", ("board", "vector_add")),
        ("boards", ("board",)),
        ("runs/{run}", ("show", "{run}")),
        ("problems", ("problems", "list")),
    ],
)
def test_a_route_has_the_document_of_the_command(
    stored: Stored, invoke: Command, monkeypatch: pytest.MonkeyPatch, path: str, arguments: tuple[str, ...]
) -> None:
    run = stored.graded().run
    stored.record()
    monkeypatch.chdir(stored.root)
    monkeypatch.setenv("KERNELMARK_AUTHOR", "bob")
    asked = [part.format(run=run) for part in arguments]
    printed = json.loads(invoke(*asked, "--format", "json").out)
    answer = client(stored, "bob").get(f"/api/v1/{path.format(run=run)}")
    valid(answer.text)
    assert (answer.status_code, answer.headers["content-type"], answer.json()) == (200, "application/json", printed)


def test_own_submissions_are_listed_with_their_standings_if_asked_for(stored: Stored) -> None:
    asked = client(stored, "ada")
    first, fallen, other = (stored.graded(number).run for number in range(3))
    stored.graded(3, author="bob")
    stored.record()
    event = Moderation(run=fallen, action="disqualify", actor="eve", reason="copied", created_at=datetime.now(UTC))
    stored.ledger().moderate(event)
    stored.add("f" * 16, "queued", stored.submission(number=5), problem="softmax")

    def listed(**parameters: str) -> list[tuple[str, str]]:
        answer = asked.get("/api/v1/submissions", params=parameters).json()
        return sorted((item["run"], item["standing"]) for item in answer["items"])

    places = {first: "rank 1 of 2", fallen: "disqualified", other: "", "f" * 16: ""}
    assert listed(standings="true") == [*places.items()]
    assert listed() == [(run, "") for run in places]


def test_a_head_names_the_last_line(stored: Stored) -> None:
    asked = client(stored)
    none = asked.get("/api/v1/ledgers/vector_add/head").json()
    assert (none["seq"], none["sha256"]) == (0, "0" * 64)
    stored.graded()
    stored.record()
    [line] = stored.ledger().read()
    answer = asked.get("/api/v1/ledgers/vector_add/head").json()
    assert answer == {"problem": "vector_add", "seq": 1, "sha256": line.hash}  # a size would tell an outcome


def test_a_document_is_sent_again_if_it_has_changed(stored: Stored) -> None:
    stored.graded(0)
    stored.record()
    asked = client(stored)
    first = asked.get("/api/v1/boards/vector_add")
    assert first.headers["cache-control"] == "no-cache"
    known = {"If-None-Match": first.headers["etag"]}
    assert (asked.get("/api/v1/boards/vector_add", headers=known).status_code) == 304
    stored.graded(1, author="bob")
    stored.record()
    assert asked.get("/api/v1/boards/vector_add", headers=known).status_code == 200


def test_a_team_of_accounts_ranks_as_one(stored: Stored) -> None:
    stored.graded(0)
    stored.record()
    stored.put(accounts.update().values(team="quick"))
    [table] = client(stored).get("/api/v1/boards/vector_add").json()["items"]
    assert table["rows"][0]["team"]["name"] == "quick"


@pytest.mark.parametrize("path", ["problems/none", "boards/none", "ledgers/none/head", "runs/" + "d" * 16])
def test_what_is_not_there_is_said_so(stored: Stored, path: str) -> None:
    answer = client(stored).get(f"/api/v1/{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def _ready(stored: Stored) -> tuple[int, list[str]]:
    recorder = Recorder(stored.service)
    recorder.compare_stores()
    recorder.ready.set()
    answer = TestClient(create_app(stored.service, recorder), base_url=stored.service.url).get("/health/ready")
    return answer.status_code, answer.json()["problems"]


def cut(stored: Stored) -> None:
    stored.ledger().path.write_bytes(b"")


def clock(stored: Stored) -> None:
    stored.put(insert(facts).values(key="received", value=str(NOW_NS + 61 * 10**9)))


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        (cut, "recording of vector_add has stopped: vector_add.jsonl was changed: line 1 no longer ends at byte"),
        (clock, "the clock was set back"),
    ],
)
def test_it_is_ready_unless_it_cannot_do_its_work(
    stored: Stored, breaks: Callable[[Stored], None], message: str
) -> None:
    stored.graded()
    stored.record()
    assert _ready(stored) == (200, [])
    breaks(stored)
    status, [problem] = _ready(stored)
    assert (status, problem[: len(message)]) == (503, message)
    assert str(stored.root) not in problem


def test_it_is_not_ready_before_the_stores_were_compared_and_lives_all_the_same(stored: Stored) -> None:
    asked = client(stored)
    assert asked.get("/health/live").status_code == 200
    answer = asked.get("/health/ready")
    assert (answer.status_code, answer.json()["problems"]) == (
        503,
        ["the ledgers are being compared with the database"],
    )


def test_a_problem_is_told_to_people_without_what_is_hidden(course: Course) -> None:
    answered = client(course.stored).get("/api/v1/problems/twice/text")
    assert (answered.status_code, answered.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    assert "twice(x, out): a function that writes into out" in answered.text
    assert SECRET_SIZE not in answered.text
    assert client(course.stored).get("/api/v1/problems/absent/text").status_code == 404
