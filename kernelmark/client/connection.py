"""A connection to one server: requests with a token, repeated where that is safe, and answers that are checked.

Client commands, organizers' commands and the worker use it. Trusted; the server is not: its answers are bounded, parsed
into documents, and its text is made safe to print. A token is sent to one exact origin. Redirects are not followed,
`~/.netrc` is not read, and proxies are those of the environment, except for this machine.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import requests
from pydantic import BaseModel, TypeAdapter, ValidationError
from requests.auth import AuthBase

from harness.errors import HarnessError, UsageError
from harness.shared.document import parse_json
from kernelmark import __version__
from kernelmark.service.origin import is_loopback, origin_of
from kernelmark.service.refusal import UNKNOWN_FIELD, VERSION_HEADER, WORKER_STARTING, RefusalDocument
from kernelmark.text.terminal import say
from leaderboard.text.visible import visible

T = TypeVar("T")
QueryParameters = Mapping[str, str | int | float]

ANSWER_BYTES = 64 << 20
_CONNECT_S, _READ_S, _PATIENCE_S = 10.0, 30.0, 5.0
_STARTING_S = 60.0  # on a machine with a GPU a worker takes ten seconds
_LONGEST = 1000  # characters of a server's text that are shown
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_PASSING = (502, 503, 504)  # what a proxy says while the server starts
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # pydantic's names, of models and of dataclasses
_FOREIGN = "is it the address of a server of kernelmark?"


class Refused(UsageError):
    """The server refused a request, and repeating it is of no use: `status` and `code` say how, for programs."""

    def __init__(
        self, where: str, what: str, remedy: str, status: int, code: str, retry_after_s: int | None = None
    ) -> None:
        self.status, self.code, self.retry_after_s = status, code, retry_after_s
        super().__init__(where, what, remedy)

    def __reduce__(self) -> Any:
        return type(self), (self.where, self.what, self.remedy, self.status, self.code, self.retry_after_s)


class Unreachable(HarnessError):
    """There was no answer from the server, or one that is not the server's own."""

    def __init__(self, what: str, remedy: str = "", *, passing: bool = False, starting: bool = False) -> None:
        """`passing`: whether the same request may be answered a moment later, and `starting`: within a minute."""
        self.passing, self.starting = passing, starting
        super().__init__(what, remedy)


class Connection:
    """A server's origin and the token for it. A context manager; one thread at a time may use it."""

    def __init__(
        self,
        origin: str,
        token: str | None = None,
        *,
        ca: Path | None = None,
        patience_s: float | None = None,
        tolerant: bool = False,
    ) -> None:
        """
        Args:
            origin: such as https://bench.example.org; http is for this machine only.
            token: the secret; None: requests are made as nobody.
            ca: a file of certificates in PEM, which are trusted in place of the usual ones.
            patience_s: for how long a request that may be repeated is repeated while there is no answer; None: 5 s.
            tolerant: the server may have another version. Answers may have fields that this one does not know, and
                requests leave out those that are not used, which an earlier one may not know.

        Raises:
            UsageError: the address or the file of certificates is not valid.
        """
        try:
            self.origin = origin_of(origin)
        except ValueError as error:
            raise UsageError(f"server {shown(origin)}", "is not a server's address", str(error)) from None
        if ca is not None and not ca.is_file():
            raise UsageError(str(ca), "is not a file of certificates", "name a file in PEM format")
        self.status, self._version = 0, ""  # of the last answer: its status, and the version that the server has
        self._patience_s, self._tolerant = _PATIENCE_S if patience_s is None else patience_s, tolerant
        self._session = _SessionWithoutRedirects()
        self._session.auth = _Bearer(token)  # always set, or else requests looks into ~/.netrc
        self._session.headers.update({"Accept": "application/json", "Accept-Encoding": "identity"})
        self._session.trust_env = not is_loopback(self.origin)
        from_environment = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE")
        self._verify: str | bool = str(ca) if ca is not None else from_environment or True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its sockets."""
        self._session.close()

    def get(self, path: str, answer: type[T], *, parameters: QueryParameters | None = None, wait_s: float = 0) -> T:
        """Ask for a document.

        Args:
            path: below `/api/v1/`, such as `submissions/81def7c3a90b4412`.
            answer: what the answer is parsed as.
            wait_s: how long the server may wait before it answers.

        Raises:
            Refused: the server refused it.
            Unreachable: there was no answer for as long as its patience lasts, or it was none of the server's.
            HarnessError: the answer is not such a document.
        """
        return self._document(self._send("GET", path, parameters=parameters, wait_s=wait_s), answer)

    def get_bytes(self, path: str) -> bytes:
        """Ask for something that is not parsed here: a verdict, a source, or lines of JSON.

        Raises:
            Refused, Unreachable: as for `get`.
        """
        return self._send("GET", path)

    def post(
        self,
        path: str,
        document: BaseModel | None,
        answer: type[T],
        *,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0,
        repeatable: bool = False,
    ) -> T:
        """Send a document.

        Args:
            repeatable: whether the server does nothing twice if it gets this twice: it has a key, or an id.

        Raises:
            Refused, Unreachable, HarnessError: as for `get`. No answer to what is not repeatable may mean that it was
                done.
        """
        content = self._send("POST", path, document, headers=headers, wait_s=wait_s, repeatable=repeatable)
        return self._document(content, answer)

    def put(self, path: str, document: BaseModel, answer: type[T]) -> T:
        """Send a document that replaces what is there.

        Raises:
            Refused, Unreachable, HarnessError: as for `get`.
        """
        return self._document(self._send("PUT", path, document), answer)

    def patch(self, path: str, document: BaseModel, answer: type[T]) -> T:
        """Send changes of what is there.

        Raises:
            Refused, Unreachable, HarnessError: as for `get`.
        """
        return self._document(self._send("PATCH", path, document), answer)

    def delete(self, path: str) -> bytes:
        """Remove, cancel or revoke; returns the body of the answer, which may be empty.

        Raises:
            Refused, Unreachable: as for `get`.
        """
        return self._send("DELETE", path)

    def _send(
        self,
        method: str,
        path: str,
        document: BaseModel | None = None,
        *,
        parameters: QueryParameters | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0,
        repeatable: bool = True,
    ) -> bytes:
        """Send a request, if it is repeatable until it is answered or the patience has ended; return the body."""
        more, body = dict(headers or {}), None
        if method in ("POST", "PUT", "PATCH"):
            more["Content-Type"] = "application/json"
            body = b""
            if document is not None:
                body = document.model_dump_json(exclude_none=True, exclude_defaults=self._tolerant).encode()
        begun, patience_s, pause_s = time.monotonic(), self._patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return self._send_once(method, path, parameters, body, more, wait_s)
            except Unreachable as error:
                if error.starting and repeatable and patience_s < _STARTING_S:
                    say(f"waiting: {error.what}")
                    patience_s = _STARTING_S
                if not (repeatable and error.passing) or time.monotonic() + pause_s > begun + patience_s:
                    raise
            time.sleep(pause_s * random.uniform(0.5, 1))  # so that many clients do not come back at once
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _send_once(
        self,
        method: str,
        path: str,
        parameters: QueryParameters | None,
        body: bytes | None,
        headers: Mapping[str, str],
        wait_s: float,
    ) -> bytes:
        try:
            with self._session.request(
                method,
                f"{self.origin}/api/v1/{path}",
                params=None if parameters is None else dict(parameters),
                data=body,
                headers=dict(headers),
                timeout=(_CONNECT_S, _READ_S + wait_s),
                verify=self._verify,
                allow_redirects=False,
                stream=True,
            ) as response:
                content, self.status = self._content(response), response.status_code
                self._version = shown(response.headers.get(VERSION_HEADER, ""))[:64]
        except requests.exceptions.SSLError as error:
            raise Unreachable(
                f"the certificate of {self.origin} is not trusted here ({short(error)})",
                "the option --ca of `kernelmark login` trusts certificates of your own",
            ) from None
        except requests.RequestException as error:
            what = f"no answer from {self.origin} ({short(error)})"
            raise Unreachable(what, "try again later", passing=True) from None
        except OSError as error:  # the certificates cannot be read
            raise Unreachable(f"no request to {self.origin} can be made ({short(error)})") from None
        if self.status < 300:
            return content
        return self._refused(response, content)

    def _content(self, response: requests.Response) -> bytes:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise Unreachable(f"{self.origin} answers in an encoding that was not asked for", _FOREIGN)
        parts, size = list[bytes](), 0
        for part in response.iter_content(1 << 16):
            parts.append(part)
            size += len(part)
            if size > ANSWER_BYTES:
                raise Unreachable(f"{self.origin} answers with more than {ANSWER_BYTES:,} bytes", _FOREIGN)
        return b"".join(parts)

    def _refused(self, response: requests.Response, content: bytes) -> NoReturn:
        status = response.status_code
        passing = status in _PASSING
        try:
            said = tolerantly(TypeAdapter(RefusalDocument).validate_json, content)
        except ValueError:
            what = f"{self.origin} answers {status} {shown(response.reason or '')}".rstrip()
            raise Unreachable(what, "try again later" if passing else _FOREIGN, passing=passing) from None
        where, title, remedy = shown(said.where), shown(said.title), shown(said.remedy)
        code = said.type.removeprefix("urn:kernelmark:")
        if code == UNKNOWN_FIELD:
            remedy += f" (here is kernelmark {__version__})"
        if status >= 500:
            raise Unreachable(f"{self.origin}: {title}", remedy, passing=passing, starting=code == WORKER_STARTING)
        what = title.removeprefix(where).removeprefix(":").lstrip()  # a title begins with where
        raise Refused(where, what or title, remedy, status, code, said.retry_after_s)

    def _document(self, content: bytes, answer: type[T]) -> T:
        try:
            read: Callable[[bytes], T] = TypeAdapter(answer).validate_json
            return tolerantly(read, content) if self._tolerant else read(content)
        except ValueError as error:
            what = f"the answer of {self.origin} is not what this version of kernelmark expects ({short(error)})"
            raise HarnessError(what, self.other_version()) from None

    def other_version(self) -> str:
        """What to do if the last answer cannot be read."""
        if self._version in ("", __version__):
            return "do both have the same version of kernelmark?"
        return f"the server has kernelmark {self._version}, and this is {__version__}: install the server's"


def shown(text: str) -> str:
    """A server's text as one line that is safe to print, and not endless."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " ..."


class _SessionWithoutRedirects(requests.Session):
    """Sees no redirects: to find where one leads, requests would read its whole body, unbounded, and decode it."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class _Bearer(AuthBase):
    def __init__(self, token: str | None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def tolerantly(read: Callable[[bytes], T], content: bytes) -> T:
    """Read a document of JSON without the fields, at any depth, that a later version has added to it.

    Args:
        read: parses it, and raises pydantic's errors.

    Raises:
        ValueError: it is not such a document.
    """
    try:
        return read(content)
    except ValidationError as error:
        unknown = [fault["loc"] for fault in error.errors() if fault["type"] in _UNKNOWN]
        if not unknown:
            raise
        found = parse_json(content)
        try:
            for *parents, name in unknown:
                part = found
                for parent in parents:
                    # pydantic's path also has the names of choices, such as a benchmark's mode
                    if not isinstance(part, dict) or parent in part:
                        part = part[parent]
                del part[name]
        except (LookupError, TypeError):
            raise error from None
    return read(json.dumps(found).encode())


def short(error: BaseException) -> str:
    """Why there is no answer, without what the layers of libraries say of each other."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return shown(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    inner: object = error
    while isinstance(inner, BaseException):
        if isinstance(inner, OSError) and inner.strerror:
            return shown(inner.strerror)
        error = inner
        inner = getattr(inner, "reason", None) or inner.__cause__ or inner.__context__ or next(iter(inner.args), None)
    return shown(str(error))[:200]
