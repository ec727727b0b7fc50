"""One connection to a server that stays open; the load generator and the fake worker ask over it.

The client's own connection is not used: it would cost more time than the server takes for an answer.
"""

from __future__ import annotations

import http.client
import json
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

JSON = "application/json"


class Gone(Exception):
    """Nobody answered: the server does not run, or ended before it had answered."""


class Refused(Exception):
    """The server's answer is an error; `status` is that of HTTP, and `body` says why."""

    def __init__(self, what: str, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        super().__init__(f"{what}: {status} {body.decode(errors='replace')[:500]}")


class Connection:
    """To one server, with one token; for one thread at a time."""

    def __init__(self, url: str, token: str = "") -> None:
        self._address, self._token = urlsplit(url).netloc, token
        self._open: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
        """The body of the answer to one request, which is sent once.

        Args:
            path: below `/api/v1/`, or with a slash at its beginning the whole path.
            body: a JSON document; none if empty.

        Raises:
            Gone: there was no answer. The server may have acted on the request.
            Refused: the answer is an error.
        """
        whole = path if path.startswith("/") else f"/api/v1/{path}"
        sent = {"Content-Type": JSON} if body else {}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            if self._open is None:
                self._open = http.client.HTTPConnection(self._address, timeout=60)
            self._open.request(method, whole, body or None, {**sent, **(headers or {})})
            answer = self._open.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Gone(f"{method} {whole}: {error!r}") from error
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise Refused(f"{method} {whole}", answer.status, content)
        return content

    def get(self, path: str) -> Any:
        return json.loads(self.ask("GET", path))

    def post(self, path: str, document: object = None, headers: dict[str, str] | None = None) -> Any:
        """The document that answers a document."""
        body = json.dumps({} if document is None else document).encode()
        answer = self.ask("POST", path, body, headers)
        return json.loads(answer) if answer else None

    def keep_asking(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        seconds: float = 60,
    ) -> bytes:
        """As `ask`, but while nobody answers, or the server says that it cannot now (503), it asks again."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.ask(method, path, body, headers)
            except (Gone, Refused) as error:
                passing = isinstance(error, Gone) or error.status == HTTPStatus.SERVICE_UNAVAILABLE
                if not passing or time.monotonic() > until:
                    raise
            time.sleep(0.05)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
