"""What stands before every route, each attack with an honest twin."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.testclient import TestClient
from starlette.types import Message

from kernelmark.server.accounts import invitations
from kernelmark.server.app import create_app
from kernelmark.server.record.recorder import Recorder
from kernelmark.server.service import Service
from kernelmark.server.web.defence import (
    API,
    BODY_BYTES,
    BODY_S,
    LINES_BYTES,
    STRANGER_BYTES,
)
from kernelmark.server.web.dependencies import Organizer, Visitor
from kernelmark.service.work import ANSWER_BYTES
from tests.service_fixtures import FakeClock, make_token

JSON = {"content-type": "application/json"}


class Number(BaseModel):
    number: int


def app_of(service: Service) -> FastAPI:
    """The application with routes that say what reached them."""
    app = create_app(service, Recorder(service))
    routes = app.router.routes
    routes.clear()

    @app.post(f"{API}/size")
    @app.post(f"{API}/submissions")
    @app.post(f"{API}/worker/answer")
    async def size(request: Request) -> int:
        return len(await request.body())

    @app.post(f"{API}/number")
    async def number(document: Number) -> int:
        return document.number

    @app.get(f"{API}/who")
    async def who(principal: Visitor) -> str | None:
        return principal and principal.name

    @app.get(f"{API}/organizers")
    async def organizers(principal: Organizer) -> str:
        return principal.name

    @app.get(f"{API}/address")
    async def address(request: Request) -> str:
        return str(request.scope["state"]["address"])

    @app.get(f"{API}/broken")
    async def broken() -> None:
        raise ZeroDivisionError("secret")

    return app


@pytest.fixture
def token(service: Service) -> str:
    return make_token(service, "ada")


Asks = Callable[..., TestClient]


@pytest.fixture
def asks(service: Service) -> Asks:
    def asks(token: str | None = None, of: Service = service, peer: str = "127.0.0.1", **headers: str) -> TestClient:
        fields = {"authorization": f"Bearer {token}"} if token else {}
        return TestClient(app_of(of), base_url=of.url, headers={**fields, **headers}, client=(peer, 5000))

    return asks


def code(response: object) -> tuple[int, str]:
    """Status and code of a refusal, whose body and headers are as they must be."""
    status, headers, document = response.status_code, response.headers, response.json()  # type: ignore[attr-defined]
    assert headers["content-type"] == "application/problem+json"
    assert document["status"] == status
    assert all(document[key] for key in ("title", "detail", "where", "remedy"))
    return status, document["type"].removeprefix("urn:kernelmark:")


def test_only_the_server_s_own_names_are_answered(asks: Asks) -> None:
    assert asks().get(f"{API}/who").status_code == 200
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:8080.evil.example", ""):
        assert code(asks(host=host).get(f"{API}/who")) == (421, "host")


def test_behind_a_proxy_both_its_public_name_and_its_own_address_are_its_own(service: Service, asks: Asks) -> None:
    public = replace(service, url="https://bench.example.org", proxy="10.0.0.1")
    answered = asks(of=public).get(f"{API}/who")
    assert answered.status_code == 200
    assert "strict-transport-security" in answered.headers
    assert asks(of=public, host="127.0.0.1:8080").get(f"{API}/who").status_code == 200


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.1", "1.2.3.4, 5.6.7.8", "5.6.7.8"),
        ("10.0.0.1", "nobody", "10.0.0.1"),
        ("10.0.0.2", "5.6.7.8", "10.0.0.2"),
    ],
)
def test_only_the_proxy_says_where_a_request_came_from(
    service: Service, asks: Asks, peer: str, forwarded: str, address: str
) -> None:
    behind = replace(service, proxy="10.0.0.1")
    assert asks(of=behind, peer=peer, **{"x-forwarded-for": forwarded}).get(f"{API}/address").json() == address
    assert asks(peer="10.0.0.1", **{"x-forwarded-for": forwarded}).get(f"{API}/address").json() == "10.0.0.1"


def test_every_answer_has_the_headers_that_protect_its_reader(asks: Asks) -> None:
    for path in ("who", "organizers", "nothing", "broken"):
        headers = asks().get(f"{API}/{path}").headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "private, no-store"
        assert not {"set-cookie", "access-control-allow-origin"} & set(headers)


def test_who_asks_is_known_by_its_token_alone(service: Service, asks: Asks, token: str) -> None:
    assert asks(token).get(f"{API}/who").json() == "ada"
    assert asks().get(f"{API}/who").json() is None
    asked = asks()
    asked.cookies.set("token", token)
    assert asked.get(f"{API}/who").json() is None
    assert asks().get(f"{API}/who?token={token}").json() is None
    for wrong in (f"{token}x", "x" * 5000):
        assert code(asks(wrong).get(f"{API}/who")) == (401, "token")
    assert code(asks(authorization=f"Basic {token}").get(f"{API}/who")) == (401, "token")


def test_a_scope_is_asked_for(service: Service, asks: Asks, token: str) -> None:
    refused = asks().get(f"{API}/organizers")
    assert code(refused) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert code(asks(token).get(f"{API}/organizers")) == (403, "scope")
    grace = make_token(service, "grace", "organizer")
    assert asks(grace).get(f"{API}/organizers").json() == "grace"


def test_an_address_that_guesses_is_slowed_down_and_those_with_a_token_are_not(
    asks: Asks, token: str, clock: FakeClock
) -> None:
    guesser = asks("kmt_guess", peer="10.1.1.1")
    app = guesser.app
    assert [guesser.get(f"{API}/who").status_code for _ in range(21)] == [401] * 21

    def one(peer: str, **headers: str) -> TestClient:
        return TestClient(app, base_url="http://127.0.0.1:8080", client=(peer, 1), headers=headers)

    slowed = one("10.1.1.1").get(f"{API}/who")
    assert code(slowed) == (429, "wrong-tokens")
    assert 0 < int(slowed.headers["retry-after"]) <= 60
    assert one("10.1.1.1", authorization=f"Bearer {token}").get(f"{API}/who").json() == "ada"
    assert one("10.1.1.2").get(f"{API}/who").status_code == 200
    clock.pass_s(61)
    assert one("10.1.1.1").get(f"{API}/who").status_code == 200


def test_who_names_no_token_keeps_nobody_at_the_same_address_away(asks: Asks) -> None:
    neighbour = asks()
    assert [neighbour.get(f"{API}/organizers").status_code for _ in range(30)] == [401] * 30
    assert neighbour.get(f"{API}/who").status_code == 200


def test_invitations_are_accepted_beside_wrong_tokens_until_many_of_them_are_wrong(
    service: Service, clock: FakeClock
) -> None:
    app = create_app(service, Recorder(service))
    accept, secret = f"{API}/invitations/accept", invitation(service)

    def one(peer: str = "10.1.1.1", **headers: str) -> TestClient:
        return TestClient(app, base_url=service.url, client=(peer, 1), headers=headers)

    for _ in range(30):
        one(authorization="Bearer kmt_guess").get(f"{API}/me")
    assert code(one().get(f"{API}/boards")) == (429, "wrong-tokens")
    wrong, right = {"secret": "kmi_wrong", "name": "ada"}, {"secret": secret, "name": "ada"}
    guesser = one()
    for _ in range(301):
        assert code(guesser.post(accept, json=wrong)) == (404, "no-such-invitation")
    slowed = guesser.post(accept, json=right)
    assert code(slowed) == (429, "wrong-invitations")
    assert 0 < int(slowed.headers["retry-after"]) <= 60
    assert code(one("10.1.1.2").post(accept, json=wrong)) == (404, "no-such-invitation")
    clock.pass_s(61)
    for _ in range(30):
        one(authorization="Bearer kmt_guess").get(f"{API}/me")
    assert guesser.post(accept, json=right).status_code == 201


def invitation(service: Service) -> str:
    now_ns = service.clock.now_ns()
    secret = service.database.write(lambda connection: invitations.first(connection, now_ns)).result()
    assert secret is not None
    return secret


@pytest.mark.parametrize(
    ("peer", "same", "other"),
    [
        ("2001:db8:1:1::1", "2001:db8:1:1:ffff::2", "2001:db8:1:2::1"),
        ("::ffff:10.1.1.1", "10.1.1.1", "::ffff:10.1.1.2"),  # so names a proxy that listens for both those of IPv4
    ],
)
def test_a_network_of_ipv6_is_one_address(asks: Asks, peer: str, same: str, other: str) -> None:
    guesser = asks("kmt_guess", peer=peer)
    for _ in range(21):
        guesser.get(f"{API}/who")

    def one(peer: str) -> int:
        return TestClient(guesser.app, base_url="http://127.0.0.1:8080", client=(peer, 1)).get(f"{API}/who").status_code

    assert one(same) == 429
    assert one(other) == 200


@pytest.mark.parametrize(
    ("path", "media_type", "most"),
    [
        ("size", "application/json", BODY_BYTES),
        ("submissions", "multipart/form-data; boundary=x", BODY_BYTES),
        ("submissions", "application/x-ndjson", LINES_BYTES),
        ("worker/answer", "application/json", 2 * ANSWER_BYTES),
    ],
)
def test_a_body_is_counted_while_it_is_read(asks: Asks, token: str, path: str, media_type: str, most: int) -> None:
    slack = 64 << 10  # what a route allows beyond the content

    def pieces(size: int) -> Iterator[bytes]:  # without a Content-Length
        for begin in range(0, size, 64 << 10):
            yield b"x" * min(64 << 10, size - begin)

    headers = {"content-type": media_type}
    one = asks(token)
    assert one.post(f"{API}/{path}", content=pieces(most), headers=headers).json() == most
    assert code(one.post(f"{API}/{path}", content=pieces(most + slack + 1), headers=headers)) == (413, "too-large")
    assert code(one.post(f"{API}/{path}", content=b"x" * (most + slack + 1), headers=headers)) == (413, "too-large")


def test_who_names_no_token_sends_little(asks: Asks) -> None:
    one = asks(**JSON)
    assert one.post(f"{API}/size", content=b"x" * STRANGER_BYTES).json() == STRANGER_BYTES
    assert code(one.post(f"{API}/size", content=b"x" * (STRANGER_BYTES + 1))) == (413, "too-large")


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "unknown"])
def test_a_body_is_taken_as_it_is(asks: Asks, encoding: str) -> None:
    assert code(asks(**JSON, **{"content-encoding": encoding}).post(f"{API}/size", content=b"{}")) == (415, "encoding")
    assert asks(**JSON, **{"content-encoding": "identity"}).post(f"{API}/size", content=b"{}").status_code == 200


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/zip", ""])
def test_only_what_a_route_may_read_is_taken(asks: Asks, media_type: str) -> None:
    assert code(asks(**{"content-type": media_type}).post(f"{API}/size", content=b"{}")) == (415, "media-type")


def test_a_document_that_is_none_is_refused_with_its_place(asks: Asks) -> None:
    for body, where in (("{", "1"), ('{"number": "x"}', "number"), ("[" * 5000, "1"), ("", "body"), ("\xff", "1")):
        refused = asks(**JSON).post(f"{API}/number", content=body.encode("latin-1"))
        assert code(refused)[0] in (400, 422)
        assert where == "1" or refused.json()["where"] == where
    assert asks(**JSON).post(f"{API}/number", content='{"number": 3}').json() == 3


def test_what_was_not_expected_is_logged_and_not_told(asks: Asks, caplog: pytest.LogCaptureFixture) -> None:
    answered = asks().get(f"{API}/broken")
    assert code(answered) == (503, "unavailable")
    assert "secret" not in answered.text
    assert "ZeroDivisionError: secret" in caplog.text


def test_the_log_has_a_line_for_each_request_and_no_token(
    asks: Asks, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kernelmark.access")
    asks(token).get(f"{API}/who?token={token}")
    asks("kmt_wrong").get(f"{API}/who")
    lines = [json.loads(record.message) for record in caplog.records if record.name == "kernelmark.access"]
    assert [(line["status"], line["account"], line["path"]) for line in lines] == [
        (200, "ada", f"{API}/who"),
        (401, None, f"{API}/who"),
    ]
    assert token not in caplog.text
    assert "kmt_wrong" not in caplog.text


def sent(service: Service, token: str, messages: Callable[[], Iterator[Message | None]]) -> list[Message]:
    """What the application answers if the connection brings these messages; None: nothing, for ever."""
    answered: list[Message] = []
    coming = messages()

    async def receive() -> Message:
        if (message := next(coming)) is None:
            await asyncio.Event().wait()
        assert message is not None
        return message

    async def send(message: Message) -> None:
        answered.append(message)

    headers = [("host", "127.0.0.1:8080"), ("authorization", f"Bearer {token}"), *JSON.items()]
    scope = {
        "type": "http", "method": "POST", "path": f"{API}/size", "raw_path": b"", "query_string": b"",
        "root_path": "", "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }  # fmt: skip
    asyncio.run(app_of(service)(scope, receive, send))
    return answered


@pytest.mark.parametrize(("pieces", "status"), [(int(BODY_S) - 1, 200), (int(BODY_S) + 2, 408)])
def test_a_body_that_trickles_in_ends(service: Service, token: str, clock: FakeClock, pieces: int, status: int) -> None:
    def trickle() -> Iterator[Message | None]:
        for _ in range(pieces):
            clock.pass_s(1)
            yield {"type": "http.request", "body": b"x", "more_body": True}
        yield {"type": "http.request", "body": b"", "more_body": False}

    assert sent(service, token, trickle)[0]["status"] == status


def test_a_body_that_never_comes_ends(service: Service, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelmark.server.web.defence.BODY_S", 0.01)
    assert sent(service, token, lambda: iter([None]))[0]["status"] == 408


def test_who_has_left_is_not_answered(service: Service, token: str) -> None:
    parts: list[Message | None] = [
        {"type": "http.request", "body": b"x", "more_body": True},
        {"type": "http.disconnect"},
    ]
    assert sent(service, token, lambda: iter(parts)) == []
