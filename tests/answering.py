"""HTTP servers on this machine whose answers a test gives."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


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


@contextmanager
def answering(answer: Callable[[Asked], Answered | None], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer every request so, in a thread of its own, or end its connection; yields the server's origin."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ssl.SSLError):  # the client does not trust the certificate
                super().handle()

        def _any(self) -> None:
            parts = urlsplit(self.path)
            path, parameters = parts.path.removeprefix("/api/v1/"), dict(parse_qsl(parts.query))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = answer(Asked(self.command, path, parameters, headers, body))
            if given is None:
                self.close_connection = True
                return
            try:
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(given.body)))
                self.end_headers()
                self.wfile.write(given.body)
            except OSError:
                self.close_connection = True  # the client has gone

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - named by http.server

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        scheme, host = ("http", "127.0.0.1") if tls is None else ("https", "localhost")
        yield f"{scheme}://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
