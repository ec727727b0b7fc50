"""A server that answers as a test says, over HTTP on this machine, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from kernelmark.service.refusal import MEDIA_TYPE, Refusal


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    """Without `/api/v1/`."""
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answered:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Fake:
    """Gives the prepared answers of a path in turn, and the last one again and again; 404 for any other path."""

    asked: list[Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._answers = defaultdict[str, deque[Answered | None]](deque)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answers(self, route: str, *arguments: object, status: int = 200) -> None:
        """What `GET submissions/…` is answered with, next: documents, bytes, refusals, `Answered`, or None: no answer,
        the connection ends.
        """
        self._answers[route].extend(_answered(argument, status) for argument in arguments)

    def of(self, route: str) -> list[Asked]:
        """The requests of a method and path, such as `POST submissions`."""
        return [each for each in self.asked if f"{each.method} {each.path}" == route]

    def _next(self, asked: Asked) -> Answered | None:
        with self._lock:
            self.asked.append(asked)
            queue = self._answers[f"{asked.method} {asked.path}"]
            if not queue:
                return _answered(Refusal(404, "not-found", asked.path, "there is no such page", "look at docs"), 404)
            return queue.popleft() if len(queue) > 1 else queue[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                parameters = dict(parse_qsl(parts.query))
                path = parts.path.removeprefix("/api/v1/")
                answer = fake._next(Asked(self.command, path, parameters, headers, body))
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - named by http.server

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _answered(given: object, status: int) -> Answered | None:
    if given is None or isinstance(given, Answered):
        return given
    if isinstance(given, Refusal):
        body = given.document.model_dump_json().encode()
        return Answered(given.status, body, {"Content-Type": MEDIA_TYPE})
    if isinstance(given, bytes):
        return Answered(status, given)
    if hasattr(given, "model_dump_json"):
        return Answered(status, given.model_dump_json(exclude_none=True).encode())
    return Answered(status, json.dumps(given).encode())
