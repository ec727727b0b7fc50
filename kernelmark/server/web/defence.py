"""Checks every request before its route: host, token, and the body's size, time and encoding; and logs it.

A request is authenticated before its body is read, and the body is read whole before a route sees it, so nothing is
half-written.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import time
from collections import OrderedDict
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelmark import __version__
from kernelmark.server.accounts import tokens
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import Clock
from kernelmark.server.service import Service
from kernelmark.server.web import errors
from kernelmark.service.refusal import VERSION_HEADER, Refusal
from kernelmark.service.work import ANSWER_BYTES

API = "/api/v1"
BODY_S = 15.0
"""The longest that a body may take to arrive."""
BODY_BYTES = 1280 << 10
"""The size of a body unless its route says more: a submission of 1 MiB as a form."""
STRANGER_BYTES = 16 << 10
"""The size of a body of a request without a token."""
LINES_BYTES = 8 << 20
_TYPES = "application/json", "application/x-ndjson", "multipart/form-data"
_MORE: dict[tuple[str, str], int] = {
    (f"{API}/submissions", "application/json"): BODY_BYTES * 4 // 3 + (16 << 10),  # the same in base64
    (f"{API}/submissions", "application/x-ndjson"): LINES_BYTES,
    (f"{API}/worker/answer", "application/json"): 2 * ANSWER_BYTES + (64 << 10),  # a document as a string of JSON
}
_SECURITY = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_WRONG_TOKENS, _WRONG_INVITATIONS = 20, 300  # of an address within a minute; a class may share one
_WRONG_S, _ADDRESSES = 60, 10_000  # addresses that are remembered
_ACCEPT = f"{API}/invitations/accept"

access = logging.getLogger("kernelmark.access")
"""One line of JSON for each request; it has no token, header or query."""


class Defence:
    """The middleware around all routes."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._hosts = {urlsplit(service.url).netloc.lower(), service.local.lower()}
        self._wrong_tokens = Wrong(service.clock, "tokens", _WRONG_TOKENS)
        self._wrong_invitations = Wrong(service.clock, "invitations", _WRONG_INVITATIONS)
        self._headers = {VERSION_HEADER.lower(): __version__, **_SECURITY}
        if service.url.startswith("https:"):
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, exchange = time.perf_counter_ns(), _Exchange(send, self._headers)
        address = self._address(scope)
        state = scope.setdefault("state", {})
        state.update(address=address, principal=None)
        try:
            await self._guarded(scope, receive, exchange, address)
        except _Gone:
            pass
        except Refusal as refusal:
            await self._answered(refusal, scope, receive, exchange)
        except Exception as error:  # noqa: BLE001 - nothing of it may reach the one who asked
            await self._answered(errors.unexpected(error), scope, receive, exchange)
        if exchange.status == 404 and scope["path"] == _ACCEPT:
            self._wrong_invitations.count(address)
        _log_access(scope, exchange.status, time.perf_counter_ns() - began)

    async def _answered(self, refusal: Refusal, scope: Scope, receive: Receive, exchange: _Exchange) -> None:
        if not exchange.status:
            await errors.answer(refusal, {"Connection": "close"})(scope, receive, exchange.send)

    async def _guarded(self, scope: Scope, receive: Receive, exchange: _Exchange, address: str) -> None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            raise Refusal(421, "host", "Host", "is not this server's name", f"use {self._service.url}")
        principal = await self._principal(headers, address)
        scope["state"]["principal"] = principal
        if scope["path"] == _ACCEPT:
            self._wrong_invitations.refuse_many(address)
        elif principal is None:
            self._wrong_tokens.refuse_many(address)
        most = _most(scope, headers, known=principal is not None)
        body = await self._body(headers, receive, most)
        if body and _media_type(headers) not in _TYPES:
            what, remedy = "is not one that this server reads", f"send {_TYPES[0]}"
            raise Refusal(415, "media-type", "Content-Type", what, remedy)
        await self._app(scope, _again(body, receive), exchange.send)

    async def _principal(self, headers: Headers, address: str) -> Principal | None:
        given = headers.getlist("authorization")
        if not given:
            return None
        kind, _, secret = given[0].partition(" ")
        principal = None
        if len(given) == 1 and kind.lower() == "bearer" and len(secret) < 200 and secret.isascii():
            principal = await asyncio.to_thread(self._authenticate, secret.strip())
        if principal is None:
            self._wrong_tokens.count(address)
            what = "names a token that is unknown, has ended or was revoked"
            raise Refusal(401, "token", "Authorization", what, "sign in again with `kernelmark login`")
        tokens.note_use(self._service, principal)
        return principal

    def _authenticate(self, secret: str) -> Principal | None:
        with self._service.database.read() as connection:
            return tokens.authenticate(connection, secret, self._service.clock.now_ns())

    async def _body(self, headers: Headers, receive: Receive, most: int) -> bytes:
        """The whole body, counted while it arrives."""
        if headers.get("content-encoding", "identity").lower() != "identity":
            what = "is not read: bodies are taken as they are"
            raise Refusal(415, "encoding", "Content-Encoding", what, "send the body without it")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > most:
            raise _too_large(most)
        clock, body = self._service.clock, bytearray()
        end_ns = clock.monotonic_ns() + round(BODY_S * 1e9)
        while True:
            left_s = (end_ns - clock.monotonic_ns()) / 1e9
            try:
                message = await asyncio.wait_for(receive(), max(left_s, 0))
            except TimeoutError:
                what = f"did not arrive within {BODY_S:.0f} s"
                raise Refusal(408, "slow-body", "the body", what, "send it again, at once") from None
            if message["type"] == "http.disconnect":
                raise _Gone
            body += message.get("body", b"")
            if len(body) > most:
                raise _too_large(most)
            if not message.get("more_body", False):
                return bytes(body)

    def _address(self, scope: Scope) -> str:
        peer = str((scope.get("client") or ("unknown",))[0])
        if self._service.proxy is None or peer != self._service.proxy:
            return peer
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        last = forwarded[-1].rpartition(",")[2].strip() if forwarded else ""
        try:
            return str(ipaddress.ip_address(last))
        except ValueError:
            return peer


class Wrong:
    """Counts the wrong secrets of one kind, such as `tokens`, that each address has sent within a minute."""

    def __init__(self, clock: Clock, kind: str, most: int) -> None:
        self._clock, self._kind, self._most = clock, kind, most
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()  # how many since when

    def count(self, address: str) -> None:
        """One more of this address."""
        now_ns, place = self._clock.monotonic_ns(), _network(address)
        count, since_ns = self._seen.pop(place, (0, now_ns))
        self._seen[place] = (1, now_ns) if now_ns - since_ns > _WRONG_S * 10**9 else (count + 1, since_ns)
        if len(self._seen) > _ADDRESSES:
            self._seen.popitem(last=False)

    def refuse_many(self, address: str) -> None:
        """
        Raises:
            Refusal: the address had more wrong ones within a minute than it may.
        """
        count, since_ns = self._seen.get(_network(address), (0, 0))
        left_s = _WRONG_S - (self._clock.monotonic_ns() - since_ns) // 10**9
        if count > self._most and left_s > 0:
            what = f"sent too many {self._kind} that are not valid"
            raise Refusal(429, f"wrong-{self._kind}", "this address", what, "wait a minute", retry_after_s=left_s)


class _Gone(Exception):
    """The client has closed the connection: there is nobody to answer."""


class _Exchange:
    """Sends an answer with the headers that every answer has, and knows its status."""

    def __init__(self, send: Send, headers: dict[str, str]) -> None:
        self._send, self._headers = send, headers
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(self._headers)
            headers.setdefault("cache-control", "private, no-store")
        await self._send(message)


def _most(scope: Scope, headers: Headers, *, known: bool) -> int:
    if not known:
        return STRANGER_BYTES
    return _MORE.get((scope["path"], _media_type(headers)), BODY_BYTES)


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _too_large(most: int) -> Refusal:
    return Refusal(413, "too-large", "the body", f"is larger than {most:,} bytes", "submit source, not data")


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives the app the body that was read, and then what the connection says next."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _network(address: str) -> str:
    """The address; of IPv6 its first 64 bits, since one user has all that begin so."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


def _log_access(scope: Scope, status: int, took_ns: int) -> None:
    if not access.isEnabledFor(logging.INFO):
        return
    state = scope["state"]
    principal: Principal | None = state["principal"]
    line = {
        "at_ns": time.time_ns(),
        "method": scope["method"][:16],
        "path": scope["path"][:200],
        "status": status,
        "ms": round(took_ns / 1e6, 1),
        "address": state["address"],
        "account": principal.name if principal else None,
    }
    access.info(json.dumps(line))
