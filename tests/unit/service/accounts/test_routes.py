"""The routes of accounts and organizers over HTTP: who may ask what, and that each act is noted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from kernelmark.server.accounts import invitations, names
from kernelmark.server.app import create_app
from kernelmark.server.database import tables
from kernelmark.server.queue import endings
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from tests.service_fixtures import make_principal, make_token, make_worker_token
from tests.unit.service.queue.queueing import Worker, submit

API = "/api/v1"
SHA = "a" * 64


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service, Recorder(service)), base_url=service.url) as client:
        yield client


ORGANIZERS = [
    ("GET", "accounts", None),
    ("PATCH", "accounts/ada", {"role": "organizer"}),
    ("POST", "accounts/ada/link", {"author": "grace"}),
    ("DELETE", "accounts/ada/tokens", None),
    ("GET", "invitations", None),
    ("POST", "invitations", {"role": "organizer"}),
    ("DELETE", "invitations/1", None),
    ("GET", "workers", None),
    ("POST", "workers/gpu1", {}),
    ("DELETE", "workers/gpu1", None),
    ("POST", "workers/gpu1/resume", None),
    ("GET", "pins", None),
    ("PUT", "pins", {"problem": "twice", "final": False, "private_sha256": SHA}),
    ("GET", "brakes", None),
    ("PUT", "brakes", {"why": "a leak"}),
    ("DELETE", "brakes", None),
    ("GET", "audit", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ORGANIZERS)
def test_only_organizers_organize(
    method: str, path: str, body: dict[str, Any] | None, client: TestClient, service: Service
) -> None:
    before = _noted(service)
    for secret, status in [
        (None, 401),
        ("kmt_" + "A" * 43, 401),
        (make_token(service, "ada"), 403),
        (make_token(service, "tina", "assistant"), 403),
        (make_worker_token(service), 403),
    ]:
        answer = _ask(client, secret, method, path, body)
        assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert _noted(service) == before


def test_every_act_of_an_organizer_is_noted_and_no_secret_with_it(client: TestClient, service: Service) -> None:
    """The honest twin: an organizer does it all."""
    org = make_token(service, "org", "organizer")
    make_token(service, "ada")
    answers = [_ask(client, org, *asked) for asked in ORGANIZERS if asked[1] != "accounts/ada/link"]
    assert {answer.status_code for answer in answers} <= {200, 201, 204, 404}
    assert [answer.status_code for answer in answers].count(404) == 1, "there is no invitation 1"
    made = [*answers[4].json()["items"], answers[7].json()]
    noted = _noted(service)
    assert [(row.action, row.subject) for row in noted] == [
        ("accounts role", "ada"),
        ("accounts sign-out", "ada"),
        ("invitations make", ""),
        ("workers add", "gpu1"),
        ("workers revoke", "gpu1"),
        ("workers resume", "gpu1"),
        ("workers pin", "twice"),
        ("queue pause", ""),
        ("queue resume", ""),
    ]
    assert {row.account for row in noted} == {"org"}
    shown = [made[0]["link"].partition("#")[2], made[1]["token"]]
    assert all(secret[:4] in ("kmi_", "kmw_") and secret not in str(noted) for secret in shown)


def test_somebody_comes_in_submits_a_token_to_a_script_and_leaves(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    link = _ask(client, org, "POST", "invitations", {"team": "red"}).json()["items"][0]["link"]
    page, _, secret = link.partition("#")
    assert secret not in (shown := client.get(page)).text
    assert f"kernelmark login '{service.url}/join#kmi_...'" in shown.text
    given = _ask(client, None, "POST", "invitations/accept", {"secret": secret, "name": "ada", "label": "laptop"})
    assert given.status_code == 201
    token = given.json()["token"]
    me = _ask(client, token, "GET", "me").json()
    assert me == given.json()["me"]
    assert (me["name"], me["role"], me["team"], me["scopes"]) == (
        "ada",
        "participant",
        "red",
        ["batch", "read", "submit"],
    )
    script = _ask(client, token, "POST", "me/tokens", {"scopes": ["submit", "read"], "label": "loop"}).json()["token"]
    rows = _ask(client, token, "GET", "me/tokens").json()["items"]
    assert [(row["label"], row["current"], row["scopes"]) for row in rows] == [
        ("laptop", True, ["batch", "read", "submit"]),
        ("loop", False, ["read", "submit"]),
    ]
    assert rows[1]["parent"] == rows[0]["id"]
    assert "kmt_" not in str(rows)
    assert _ask(client, script, "GET", "me").status_code == 200
    assert _ask(client, token, "DELETE", "me/tokens/current").status_code == 204
    assert _ask(client, token, "GET", "me").status_code == 401
    assert _ask(client, script, "GET", "me").status_code == 401, "it was made with the one that was revoked"
    again = _ask(client, None, "POST", "invitations/accept", {"secret": secret, "name": "bob"})
    assert (again.status_code, again.json()["type"]) == (410, "urn:kernelmark:invitation-used")


def test_a_token_makes_none_that_may_more_and_none_of_its_own_children(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    for scope in ("organize", "assist", "work"):
        assert _ask(client, org, "POST", "me/tokens", {"scopes": [scope]}).status_code == 422
    reader = _ask(client, org, "POST", "me/tokens", {"scopes": ["read"]}).json()["token"]
    assert _ask(client, reader, "POST", "me/tokens", {"scopes": ["read"]}).status_code == 403
    assert _ask(client, reader, "GET", "accounts").status_code == 403
    narrowed = update(tables.tokens).where(tables.tokens.c.id == 1).values(scopes="read")
    service.database.write(lambda c: c.execute(narrowed)).result()
    assert _ask(client, org, "POST", "me/tokens", {"scopes": ["submit"]}).status_code == 403


def test_a_token_that_was_handed_on_revokes_itself_alone(client: TestClient, service: Service) -> None:
    ada, bob = make_token(service, "ada"), make_token(service, "bob")
    script, other = (_ask(client, ada, "POST", "me/tokens", {}).json()["token"] for _ in range(2))
    assert _ask(client, script, "DELETE", "me/tokens/1").status_code == 403
    assert _ask(client, script, "DELETE", "me/tokens/4").status_code == 403
    assert _ask(client, bob, "DELETE", "me/tokens/1").status_code == 404
    assert _ask(client, ada, "DELETE", "me/tokens/4").status_code == 204
    assert _ask(client, other, "GET", "me").status_code == 401
    assert _ask(client, script, "DELETE", "me/tokens/current").status_code == 204
    assert _ask(client, ada, "GET", "me").status_code == 200


def test_the_first_organizer_invites_the_second_and_each_watches_the_other(
    client: TestClient, service: Service
) -> None:
    first = service.database.write(lambda c: invitations.first(c, service.clock.now_ns())).result()
    org = _ask(client, None, "POST", "invitations/accept", {"secret": first, "name": "grace"}).json()["token"]
    assert _ask(client, org, "PATCH", "accounts/grace", {"role": "participant"}).status_code == 403
    link = _ask(client, org, "POST", "invitations", {"role": "organizer", "name": "linus"}).json()["items"][0]["link"]
    second = {"secret": link.partition("#")[2]}
    linus = _ask(client, None, "POST", "invitations/accept", second).json()["token"]
    assert _ask(client, linus, "PATCH", "accounts/grace", {"state": "banned"}).status_code == 200
    assert _ask(client, org, "GET", "me").status_code == 401
    noted = _ask(client, linus, "GET", "audit?last=2").json()["items"]
    assert [row["action"] for row in noted] == ["accounts state", "invitations accept"]
    assert noted[0]["details"] == {"old": "active", "new": "banned"}
    assert _ask(client, linus, "GET", f"audit?before={noted[-1]['id']}&last=1").json()["items"][0]["subject"] == "linus"


def test_invitations_for_a_class_are_listed_without_their_links(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    made = _ask(client, org, "POST", "invitations", {"count": 60, "days": 7}).json()["items"]
    assert len({row["link"] for row in made}) == 60
    used = {"secret": made[0]["link"].partition("#")[2], "name": "ada"}
    assert _ask(client, None, "POST", "invitations/accept", used).status_code == 201
    rows = _ask(client, org, "GET", "invitations").json()["items"]
    assert _ask(client, org, "DELETE", f"invitations/{rows[0]['id']}").status_code == 204
    assert _ask(client, org, "DELETE", f"invitations/{rows[-1]['id']}").status_code == 404, "it was used"
    states = [row["state"] for row in _ask(client, org, "GET", "invitations").json()["items"]]
    assert states == ["revoked", *["open"] * 58, "used"]
    assert {row["made_by"] for row in rows} == {"org"}


def test_strangers_do_not_have_ledgers_read(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "taken_names", lambda _: pytest.fail("read for a stranger"))
    guess = {"secret": "kmi_" + "A" * 43, "name": "eve"}
    assert _ask(client, None, "POST", "invitations/accept", guess).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b'{"secret": "\\ud800", "name": "ada"}',
        b'{"secret": "kmi_\\u0000", "name": "ada"}',
        b'{"secret": "kmi_A", "name": "\\ud800", "label": "\\u001b"}',
        b'{"secret": "kmi_A", "name": "ada", "role": "organizer"}',
        b'{"secret": ["kmi_A"]}',
        b"[]",
        b"{",
        b"\xff",
    ],
)
def test_what_is_no_acceptance_is_refused(body: bytes, client: TestClient) -> None:
    answer = client.post(f"{API}/invitations/accept", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 404, 422), answer.text


def test_a_workers_tokens_are_revoked_together(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    tokens = [_ask(client, org, "POST", "workers/gpu1", {}).json()["token"] for _ in range(2)]
    other = _ask(client, org, "POST", "workers/gpu2", {"days": 30}).json()["token"]
    rows = _ask(client, org, "GET", "workers").json()["items"]
    assert [(row["name"], row["tokens"]) for row in rows] == [("gpu1", 2), ("gpu2", 1)]
    assert _ask(client, org, "DELETE", "workers/gpu1").status_code == 204
    for token, status in [(tokens[0], 401), (tokens[1], 401), (other, 403)]:
        assert _ask(client, token, "GET", "me").status_code == status
    assert _ask(client, org, "DELETE", "workers/gpu3").status_code == 404


def test_a_paused_worker_is_resumed_and_its_faults_are_forgotten(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    paused = tables.workers.insert().values(name="gpu1", paused="three faults", faults='["account:ada"]')
    service.database.write(lambda c: c.execute(paused)).result()
    assert _ask(client, org, "GET", "workers").json()["items"][0]["paused"] == "three faults"
    assert _ask(client, org, "POST", "workers/gpu1/resume").status_code == 200
    assert _ask(client, org, "GET", "workers").json()["items"][0]["paused"] == ""
    assert json.loads(_noted(service)[0].details) == {"old": "three faults", "faults": ["account:ada"]}


def test_an_organizer_pins_a_hash_and_a_workers_own_word_pins_none(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    hashes = {"public": "b" * 64, "private": SHA, "final_public": "b" * 64}
    said = tables.workers.insert().values(name="gpu1", problems=json.dumps({"twice": hashes}))
    service.database.write(lambda c: c.execute(said)).result()
    rows = _ask(client, org, "GET", "pins").json()["items"]
    assert [(row["final"], row["pinned"], row["workers"]) for row in rows] == [
        (False, False, {"gpu1": SHA}),
        (True, False, {"gpu1": None}),
    ]
    pin = {"problem": "twice", "final": False, "private_sha256": SHA}
    assert _ask(client, org, "PUT", "pins", pin).json()["items"][0]["private_sha256"] == SHA
    assert _ask(client, org, "PUT", "pins", {**pin, "private_sha256": None}).json()["items"][0]["pinned"] is True
    assert json.loads(_noted(service)[1].details)["old"] == {"pinned": True, "private_sha256": SHA}
    assert _ask(client, org, "PUT", "pins", {**pin, "problem": "other"}).status_code == 404


def test_the_queue_and_an_account_are_paused_and_resumed(client: TestClient, service: Service) -> None:
    org = make_token(service, "org", "organizer")
    make_token(service, "ada")
    assert _ask(client, org, "PUT", "brakes", {"account": "ADA", "why": "too hot"}).status_code == 200
    assert _ask(client, org, "PUT", "brakes", {"account": "ada", "why": "still hot"}).status_code == 200
    rows = _ask(client, org, "PUT", "brakes", {"why": "a leak"}).json()["items"]
    assert [(row["account"], row["by"], row["why"]) for row in rows] == [
        ("ada", "org", "still hot"),
        (None, "org", "a leak"),
    ]
    assert _ask(client, org, "DELETE", "brakes").status_code == 204
    assert _ask(client, org, "DELETE", "brakes").status_code == 404
    assert _ask(client, org, "DELETE", "brakes?account=ada").status_code == 204
    assert _ask(client, org, "PUT", "brakes", {"account": "org", "why": "me"}).status_code == 200
    assert _ask(client, org, "DELETE", "brakes?account=org").status_code == 403, "another organizer resumes it"


def _ask(client: TestClient, secret: str | None, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return client.request(method, f"{API}/{path}", headers=headers, json=body)


def _noted(service: Service) -> list[Any]:
    with service.database.read() as connection:
        return list(connection.execute(tables.audit.select()).all())


def test_a_failed_run_is_graded_again_by_staff_but_not_by_its_own_team(client: TestClient, service: Service) -> None:
    service.files.refresh(service.database)
    Worker(service).hello()
    ada = make_principal(service, "ada", team="red")
    run = submit(service, ada)
    mate, tina = make_token(service, "mate", "assistant", "red"), make_token(service, "tina", "assistant")
    ask = ("POST", f"gradings/{run}/again")
    assert _ask(client, tina, *ask).json()["type"] == "urn:kernelmark:run-not-failed"
    failed = update(tables.gradings).values(state="failed", error_class="SandboxError")
    service.database.write(lambda c: c.execute(failed)).result()
    assert _ask(client, mate, *ask).json()["type"] == "urn:kernelmark:own-run"
    assert _ask(client, make_token(service, "ada"), *ask).status_code == 403
    assert _ask(client, tina, *ask).json()["state"] == "queued"
    [noted] = _noted(service)
    assert (noted.account, noted.action, noted.subject) == ("tina", "gradings again", run)
    assert json.loads(noted.details) == {"old": "SandboxError", "final": False}
    assert _ask(client, tina, "POST", "gradings/0123456789abcdef/again").status_code == 404


def test_a_run_of_somebody_else_that_an_organizer_cancels_is_noted(service: Service) -> None:
    service.files.refresh(service.database)
    Worker(service).hello()
    ada, org = make_principal(service, "ada"), make_principal(service, "org", "organizer")
    for by, noted in ((ada, []), (org, ["gradings cancel"])):
        run = submit(service, ada)
        service.database.write(lambda c, run=run, by=by: endings.cancel(c, service, run, by)).result()
        assert [row.action for row in _noted(service)] == noted
