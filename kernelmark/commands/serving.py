"""Serves a folder on this machine only: the web server of `kernelmark site serve`. Trusted."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path

from harness.errors import UsageError


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without logging requests, and keeps browsers from caching old pages."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server gives it
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def begin(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """Serve a folder on 127.0.0.1 in threads of this process, until the server is shut down.

    Raises:
        UsageError: the port cannot be used.
    """
    handler = functools.partial(_Quiet, directory=str(folder))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(f"port {port}", f"cannot be used ({error.strerror})", "name another with --port") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
