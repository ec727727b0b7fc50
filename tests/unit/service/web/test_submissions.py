"""The routes of submissions: what is told to whom, what is said twice, and what stays another's."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient

from kernelmark import __version__
from kernelmark.server.accounts import tokens
from kernelmark.server.app import create_app
from kernelmark.server.changes import WAITING_EACH, WaitingRequests
from kernelmark.server.database import tables
from kernelmark.server.database.tables import gradings
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.server.web import received
from kernelmark.service.submissions import SubmissionRequest
from kernelmark.service.work import ProblemHashes
from tests.service_fixtures import FakeClock, make_principal, make_project, make_service, make_token
from tests.unit.service.queue.queueing import POOL, Worker, change
from tests.unit.service.web.conftest import Asks

SUBMISSIONS = "/api/v1/submissions"
KERNEL = b"def twice(x, out):\n    out.copy_(x + x)\n"


def body(source: bytes = KERNEL, **fields: object) -> dict[str, object]:
    return {"problem": "twice", "language": "py", "pool": POOL, "source": b64encode(source).decode(), **fields}


def send(client: TestClient, key: str | None = None, source: bytes = KERNEL, **fields: object) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(SUBMISSIONS, json=body(source, **fields), headers=headers)


def submit(client: TestClient, source: bytes = KERNEL, **fields: object) -> str:
    response = send(client, source=source, **fields)
    assert response.status_code == 202, response.text
    return str(response.json()["run"])


def code(response: Any) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["type"].removeprefix("urn:kernelmark:")


def lines(response: Any) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_submission_is_accepted_once_by_its_key(service: Service, client: Asks) -> None:
    Worker(service).hello()
    ada = client("ada")
    first = send(ada, "key")
    assert first.status_code == 202
    assert first.headers["location"] == f"{service.url}{SUBMISSIONS}/{first.json()['run']}"
    assert (first.json()["state"], first.json()["before"], first.json()["author"]) == ("queued", 0, "ada")
    again = send(ada, "key")
    assert (again.status_code, again.json()["run"]) == (200, first.json()["run"])
    assert code(send(ada, "key", b"x = 1\n")) == (409, "key-used")
    assert send(client("bob"), "key").status_code == 202
    by_form = ada.post(
        SUBMISSIONS, headers={"Idempotency-Key": "key"},
        data={"problem": "twice", "pool": POOL}, files={"file": ("kernel.py", KERNEL)},
    )  # fmt: skip
    assert (by_form.status_code, by_form.json()["run"]) == (200, first.json()["run"])


def test_what_is_refused_leaves_nothing(service: Service, client: Asks) -> None:
    Worker(service).hello()
    ada = client("ada")
    assert code(send(ada, "a key with spaces")) == (422, "malformed")
    assert code(send(ada, "k" * 101)) == (422, "malformed")
    assert code(send(ada, source=b"PK\x03\x04")) == (415, "archive")
    assert code(send(ada, source=b"\xff")) == (422, "submission")
    assert code(send(ada, author="bob")) == (422, "unknown-field")
    assert code(send(ada, problem="nope")) == (404, "no-such-problem")
    assert code(ada.post(SUBMISSIONS)) == (415, "media-type")
    assert code(ada.post(SUBMISSIONS, content=b"{", headers={"content-type": "application/json"})) == (422, "malformed")
    assert code(send(client())) == (401, "unauthenticated")
    with service.database.read() as connection:
        for table in (tables.submissions, gradings, tables.sources):
            assert connection.execute(select(table)).all() == []


def test_a_field_of_a_later_version_is_refused_with_the_version_of_the_server(service: Service, client: Asks) -> None:
    Worker(service).hello()
    ada = client("ada")
    refused = send(ada, retries=3, effort="nope").json()
    assert (refused["where"], refused["type"]) == ("retries", "urn:kernelmark:unknown-field")
    assert f"is a field that this server, kernelmark {__version__}, does not know" in refused["title"]
    assert ada.get("/api/v1/me").headers["kernelmark-version"] == __version__
    assert client().get("/nowhere").headers["kernelmark-version"] == __version__


def test_another_s_submission_is_as_if_it_were_not_there(service: Service, client: Asks) -> None:
    Worker(service).hello()
    run = submit(client("ada", team="red"))
    for suffix in ("", "/source", "/verdict"):
        for name in ("bob", "eve"):
            refused = client(name).get(f"{SUBMISSIONS}/{run}{suffix}")
            assert refused.json() == client(name).get(f"{SUBMISSIONS}/{run}{suffix}").json()
            assert code(refused) == (404, "no-such-run")
            unknown = client(name).get(f"{SUBMISSIONS}/{'0' * 16}{suffix}").text
            assert refused.text.replace(run, "0" * 16) == unknown
    assert code(client("bob").delete(f"{SUBMISSIONS}/{run}"))[0] == 404
    assert client("carl", team="red").get(f"{SUBMISSIONS}/{run}").json()["author"] == "ada"
    assert client("bob").get(SUBMISSIONS).json() == {"items": []}
    assert [one["run"] for one in client("carl", team="red").get(SUBMISSIONS).json()["items"]] == [run]


def test_why_a_grading_failed_is_shown_to_organizers_alone(service: Service, client: Asks) -> None:
    """The text of an error may quote private cases."""
    worker = Worker(service)
    worker.hello()
    run = submit(client("ada"))
    (lease,) = worker.claim()
    worker.error(lease, "usage")

    def shown_to(asking: TestClient) -> object:
        return asking.get(f"{SUBMISSIONS}/{run}").json()["error"]

    assert shown_to(client("ada")) == "it could not be graded (DeviceError)"
    assert shown_to(client("tom", role="assistant")) == "it could not be graded (DeviceError)"
    assert shown_to(client("grace", role="organizer")) == "the device failed"


def test_a_source_is_given_as_text_and_another_s_look_at_it_is_noted(service: Service, client: Asks) -> None:
    Worker(service).hello()
    beside = [{"name": "part.py", "content": b64encode(b"PART = 1\n").decode()}]
    run = submit(client("ada"), beside=beside)
    expected = {
        "language": "py",
        "files": [
            {"name": "submission.py", "content": KERNEL.decode()},
            {"name": "part.py", "content": "PART = 1\n"},
        ],
    }

    def noted() -> list[tuple[str, str]]:
        with service.database.read() as connection:
            rows = connection.execute(select(tables.audit).where(tables.audit.c.action == "source read")).all()
        return [(row.account, row.subject) for row in rows]

    assert client("ada").get(f"{SUBMISSIONS}/{run}/source").json() == expected
    assert noted() == []
    assert client("grace", role="assistant").get(f"{SUBMISSIONS}/{run}/source").json() == expected
    assert noted() == [("grace", run)]
    change(service, lambda c: c.execute(update(tables.sources).values(source=b"")))
    assert code(client("ada").get(f"{SUBMISSIONS}/{run}/source")) == (410, "source-dropped")


def test_a_verdict_is_given_once_its_end_may_be_seen(service: Service, client: Asks, clock: FakeClock) -> None:
    worker = Worker(service)
    worker.hello()
    ada = client("ada")
    run = submit(ada)
    assert code(ada.get(f"{SUBMISSIONS}/{run}/verdict")) == (404, "no-verdict")
    (lease,) = worker.claim()
    worker.progress(lease)
    worker.accept(lease)
    later_ns = clock.now_ns() + 1
    change(service, lambda c: c.execute(update(gradings).values(visible_ns=later_ns)))
    assert code(ada.get(f"{SUBMISSIONS}/{run}/verdict")) == (404, "no-verdict")
    assert lines(ada.get("/api/v1/results")) == []
    assert [one["run"] for one in ada.get(f"{SUBMISSIONS}?open=true").json()["items"]] == [run]
    assert ada.get("/api/v1/queue").json()["pools"][0]["leased"] == 1
    clock.pass_s(1)
    assert ada.get(f"{SUBMISSIONS}/{run}/verdict").json() == {}
    assert [one["run"] for one in lines(ada.get("/api/v1/results"))] == [run]
    assert ada.get("/api/v1/queue").json()["pools"][0]["leased"] == 0


def test_results_go_on_where_one_left_off_and_none_is_passed_over(
    service: Service, client: Asks, clock: FakeClock
) -> None:
    worker = Worker(service)
    worker.hello()
    ada = client("ada")
    runs = []
    for number in range(3):
        runs.append(submit(ada, b"x = %d\n" % number))
        (lease,) = worker.claim()
        worker.accept(lease)
    clock.pass_s(10)
    submit(client("bob"))
    first = lines(ada.get("/api/v1/results?last=2"))
    assert [one["run"] for one in first] == runs[:2]
    assert [one["run"] for one in lines(ada.get(f"/api/v1/results?after={first[-1]['cursor']}"))] == runs[2:]
    hidden_ns = clock.now_ns() + 1
    change(service, lambda c: c.execute(update(gradings).where(gradings.c.run == runs[1]).values(visible_ns=hidden_ns)))
    assert [one["run"] for one in lines(ada.get("/api/v1/results"))] == runs[:1]


def test_who_follows_is_told_of_a_change_when_it_comes(service: Service, client: Asks) -> None:
    Worker(service).hello()
    ada = client("ada")
    run = submit(ada)
    version = ada.get(f"{SUBMISSIONS}/{run}").json()["version"]
    assert ada.get(f"{SUBMISSIONS}/{run}?after={version}&wait_s=0").json()["version"] == version
    told: list[Any] = []
    follows = threading.Thread(
        target=lambda: told.append(client("ada").get(f"{SUBMISSIONS}/{run}?after={version}&wait_s=25").json())
    )
    follows.start()
    cancelled = ada.delete(f"{SUBMISSIONS}/{run}")
    follows.join()
    assert cancelled.json()["state"] == told[0]["state"] == "cancelled"
    assert told[0]["version"] > version


def test_who_waits_is_answered_when_the_server_ends(service: Service, client: Asks, worker: TestClient) -> None:
    Worker(service).hello()
    ada = client("ada")
    run = submit(ada)
    service.changes.close()
    assert ada.get(f"{SUBMISSIONS}/{run}?after=1000&wait_s=25").json()["state"] == "queued"
    assert ada.get("/api/v1/results?wait_s=25").text == ""


def test_a_document_is_read_beside_the_event_loop(
    service: Service, client: Asks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with 120,000 unknown keys takes 0.4 s."""
    in_loop: list[bool] = []
    document = received.document

    def read(body: bytes) -> SubmissionRequest:
        in_loop.append(asyncio._get_running_loop() is not None)
        return document(body)

    monkeypatch.setattr(received, "document", read)
    Worker(service).hello()
    assert send(client("ada"), **{f"k{number}": 0 for number in range(1000)}).status_code == 422
    assert send(client("ada")).status_code == 202
    assert in_loop == [False, False]


def test_one_account_s_waiting_requests_are_bounded_and_another_s_wait(
    service: Service, client: Asks, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def waits(change: object, seconds: float) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr("kernelmark.server.web.submissions.wait", waits)
    Worker(service).hello()
    ada, bob = client("ada"), client("bob")
    runs = submit(ada), submit(bob)
    ada_id = make_principal(service, "ada").account_id
    assert ada_id is not None
    with ExitStack() as waiting:
        for _ in range(WAITING_EACH):
            assert waiting.enter_context(service.changes.accounts.one_of(ada_id))
        assert ada.get(f"{SUBMISSIONS}/{runs[0]}?after=1000&wait_s=25").json()["state"] == "queued"
        assert (ada.get("/api/v1/results?wait_s=25").text, waited) == ("", []), "it was answered at once"
        bob.get(f"{SUBMISSIONS}/{runs[1]}?after=1000&wait_s=25")
        bob.get("/api/v1/results?wait_s=25")
        assert len(waited) == 2
    ada.get(f"{SUBMISSIONS}/{runs[0]}?after=1000&wait_s=25")
    ada.get("/api/v1/results?wait_s=25")
    assert len(waited) == 4


def test_the_waiting_requests_of_all_accounts_are_bounded() -> None:
    requests = WaitingRequests(2, 3)
    with ExitStack() as waiting:
        assert [waiting.enter_context(requests.one_of(who)) for who in (1, 1, 1, 2, 2, 3)] == [
            True, True, False, True, False, False,
        ]  # fmt: skip
    with requests.one_of(3) as may_wait:
        assert may_wait


def test_many_are_submitted_as_lines_and_each_is_answered(service: Service, client: Asks) -> None:
    Worker(service).hello()
    ada = client("ada")
    sent = [body(b"x = %d\n" % number, batch="b") for number in range(70)]
    sent[33] = body(problem="nope")
    content = "\n".join(map(json.dumps, sent)) + "\n{\n"
    headers = {"content-type": "application/x-ndjson", "Idempotency-Key": "batch"}
    answers = lines(ada.post(SUBMISSIONS, content=content, headers=headers))
    assert [one["line"] for one in answers] == [*range(1, 72)]
    assert [one["status"] for one in answers] == [202] * 33 + [404] + [202] * 36 + [422]
    assert len({one["submission"]["run"] for one in answers if one["submission"]}) == 69
    again = lines(ada.post(SUBMISSIONS, content=content, headers=headers))
    assert [one["submission"] and one["submission"]["run"] for one in again] == [
        one["submission"] and one["submission"]["run"] for one in answers
    ]
    assert {one["status"] for one in again} == {200, 404, 422}


def test_batches_want_a_scope_of_their_own(service: Service, client: Asks) -> None:
    Worker(service).hello()
    client("ada")
    with service.database.read() as connection:
        account = connection.scalar(select(tables.accounts.c.id))
    narrow = change(
        service, lambda c: tokens.make(c, service.clock.now_ns(), "client", account=account, scopes=["submit"])
    )
    one = client()
    one.headers["Authorization"] = f"Bearer {narrow}"
    headers = {"content-type": "application/x-ndjson"}
    assert code(one.post(SUBMISSIONS, content=json.dumps(body()), headers=headers)) == (403, "scope")
    assert code(send(one, batch="b")) == (403, "scope")
    assert code(one.get("/api/v1/results")) == (403, "scope")
    assert code(one.get(SUBMISSIONS)) == (403, "scope")
    assert send(one).status_code == 202


def test_a_full_queue_asks_a_batch_to_come_back(tmp_path: Path, clock: FakeClock) -> None:
    limits = "[limits]\nqueued_at_once = 2\n"
    service = make_service(make_project(tmp_path / "limited", limits), clock)
    with closing(service.database):
        Worker(service).hello()
        headers = {"Authorization": f"Bearer {make_token(service)}", "content-type": "application/x-ndjson"}
        ada = TestClient(create_app(service, Recorder(service)), base_url=service.url, headers=headers)
        sent = [json.dumps(body(b"x = %d\n" % number)) for number in range(3)]
        assert [one["status"] for one in lines(ada.post(SUBMISSIONS, content="\n".join(sent)))] == [202, 202, 429]
        full = ada.post(SUBMISSIONS, content=sent[2])
        assert code(full)[0] == 429
        assert int(full.headers["retry-after"]) > 0


def test_the_queue_is_told_without_names(service: Service, client: Asks) -> None:
    (worker := Worker(service, devices=2)).hello()
    submit(client("ada"))
    told = client("bob").get("/api/v1/queue")
    assert told.json()["pools"][0] | {"expected_s": 0} == {
        "pool": POOL, "workers": 1, "devices": 2, "leased": 0, "queued": 1, "expected_s": 0, "waits_for": [],
    }  # fmt: skip
    assert "ada" not in told.text
    worker.hello(problems={})
    [pool] = client("bob").get("/api/v1/queue").json()["pools"]
    assert pool["waits_for"] == ["1 for a worker that has the server's version of twice"]
    public = service.files.snapshot.problem("twice").sha256
    worker.hello(problems={"twice": ProblemHashes(public=public, private="2" * 64, final_public=public)})
    [pool] = client("bob").get("/api/v1/queue").json()["pools"]
    confirms = "until an organizer confirms the private cases of twice (`kernelmark workers pin`)"
    assert pool["waits_for"] == [f"1 {confirms}"]
    assert code(client().get("/api/v1/queue")) == (401, "unauthenticated")


def test_organizers_alone_are_told_why_recording_has_stopped(
    service: Service, client: Asks, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = service.project.locate("results") / "twice.jsonl"
    monkeypatch.setattr(recorder, "problems", lambda: {"twice": f"{ledger} was changed: line 3"})
    why = f"recording of twice has stopped: {ledger} was changed: line 3"
    assert why in client("grace", role="organizer").get("/api/v1/queue").json()["problems"]
    assert client("ada").get("/api/v1/queue").json()["problems"] == []
    ready = client().get("/health/ready")
    assert "recording of twice has stopped: twice.jsonl was changed: line 3" in ready.json()["problems"]
    assert str(service.project.root) not in ready.text


def test_open_submissions_are_those_that_have_not_ended(service: Service, client: Asks) -> None:
    Worker(service).hello()
    ada = client("ada")
    runs = [submit(ada, b"x = %d\n" % number) for number in range(3)]
    ada.delete(f"{SUBMISSIONS}/{runs[1]}")
    listed = ada.get(SUBMISSIONS).json()["items"]
    assert {one["run"] for one in listed} == {*runs}
    assert {one["run"] for one in ada.get(f"{SUBMISSIONS}?open=true").json()["items"]} == {runs[0], runs[2]}
    assert len(ada.get(f"{SUBMISSIONS}?last=2").json()["items"]) == 2
