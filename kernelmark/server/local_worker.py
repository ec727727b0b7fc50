"""Starts `kernelmark worker` for the devices of the server's own machine, as a child process. Trusted.

The child gets its token by its standard input. When that ends, the worker ends, however the server has ended.
"""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
import threading
from typing import Self

from sqlalchemy import Connection

from kernelmark.server.accounts import tokens
from kernelmark.server.database import tables
from kernelmark.server.service import Service
from kernelmark.service.origin import is_loopback
from kernelmark.text.terminal import say

NAME = "local"
_AGAIN_S = (1.0, 5.0, 30.0, 60.0)  # between starts of a worker that ends by itself
_END_S = 20.0  # until a worker whose input has ended is killed
_DAYS = 3650  # the token is revoked when the server ends
_POLL_S = 0.5
_USAGE = 2  # the exit status of a command that somebody must put right
_CODE = "from kernelmark.commands.scripts import main; main()"
_LABEL = "the worker that `kernelmark serve` starts"
_OWN = tables.tokens.c.kind == "worker", tables.tokens.c.worker == NAME, tables.tokens.c.label == _LABEL
_log = logging.getLogger("kernelmark.server")


class LocalWorker:
    """Runs the worker from the start of a `with` to its end, and starts it again if it ends before."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="local worker", daemon=True)

    def __enter__(self) -> Self:
        if importlib.util.find_spec("torch") is None:
            say("this machine does not grade: that needs `pip install 'kernelmark[grade]'`; other workers may connect")
        else:
            self._service.own_worker.set()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._revoke()

    def _run(self) -> None:
        for number in range(sys.maxsize):
            status = None
            try:
                status = self._once()
                how = f"ended with status {status}"
            except Exception as error:  # noqa: BLE001 - a full disk, or too many processes, does not last
                how = f"cannot be started ({error})"
            if self._ending.is_set():
                return
            if status == _USAGE and number == 0:  # later it may be a mistake in the settings, made just now
                _log.error("the worker of this machine cannot start; what it says is above")
                self._service.own_worker.clear()
                return
            pause_s = _AGAIN_S[min(number, len(_AGAIN_S) - 1)]
            _log.error("the worker of this machine %s; it is started again in %.0f s", how, pause_s)
            if self._ending.wait(pause_s):
                return

    def _once(self) -> int:
        """Start the worker, wait until it or the server ends, and return its exit status."""
        server = f"http://{self._service.local}"
        if not is_loopback(server):
            server = self._service.url
        command = [sys.executable, "-P", "-c", _CODE, "worker", "--to", server, "--token-file", "-"]
        folder, token = self._service.project.root, self._token()
        with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=folder, start_new_session=True) as child:
            assert child.stdin is not None
            try:
                child.stdin.write(token.encode() + b"\n")
                child.stdin.flush()
            except BrokenPipeError:  # it has ended already, and said why
                return child.wait()
            while child.poll() is None and not self._ending.wait(_POLL_S):
                pass
            child.stdin.close()
            try:
                return child.wait(_END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                return child.wait()

    def _token(self) -> str:
        """Make a token, and revoke the one before."""
        now_ns = self._service.clock.now_ns()

        def made(connection: Connection) -> str:
            tokens.revoke(connection, now_ns, *_OWN)
            return tokens.make(connection, now_ns, "worker", worker=NAME, label=_LABEL, days=_DAYS)

        return self._service.database.write(made).result()

    def _revoke(self) -> None:
        now_ns = self._service.clock.now_ns()
        self._service.database.write(lambda connection: tokens.revoke(connection, now_ns, *_OWN)).result()
