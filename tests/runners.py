"""Runners played by a thread of the test, so that a thousand hostile conversations take seconds.

A `Script` answers the handshake and the build as an honest runner does, then does what its test says.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from harness import wire
from harness.sandbox import Breach, Exit, Launch
from harness.verdict import SandboxName

Act = Callable[["Script", int, dict[str, Any]], None]


class Script(threading.Thread):
    """One runner: `act` is called for each command after the build, with its token and its fields."""

    def __init__(self, launch: Launch, act: Act, on_hello: Callable[[Script], None] | None) -> None:
        super().__init__(daemon=True)
        self._launch, self._act, self._on_hello = launch, act, on_hello
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.gone = False

    def run(self) -> None:
        try:
            self.socket.connect(str(self._launch.socket))
            if self._on_hello:
                self._on_hello(self)
                return
            self.reply(0, "Hello", protocol=wire.PROTOCOL, python="3.11.7")
            while True:
                token, kind, body = self.receive()
                if kind == "Welcome":
                    self.reply(token, "Ready", torch="2.13.0", triton="3.7.1")
                elif kind == "Build":
                    self.reply(token, "Built", log="", interpreted=False)
                else:
                    self._act(self, token, {"kind": kind, **body})
        except (OSError, EOFError):
            pass  # the judge hung up
        finally:
            self.gone = True
            self.socket.close()

    def receive(self) -> tuple[int, str, dict[str, Any]]:
        frame, descriptors, _, _ = socket.recv_fds(self.socket, wire.MAX_FRAME_BYTES, 2)
        for descriptor in descriptors:
            socket.close(descriptor)
        if not frame:
            raise EOFError
        body = json.loads(frame)
        return body.pop("token"), body.pop("kind"), body

    def reply(self, token: int, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"token": token, "kind": kind, **fields}).encode())


class _Sandbox:
    def __init__(self, script: Script) -> None:
        self._script = script

    def ended(self) -> Exit | None:
        return Exit(0, None) if self._script.gone else None

    def breach(self) -> Breach | None:
        return None

    def close(self) -> None:
        self._script.socket.close()

    def startup_log(self) -> str:
        return ""


class Scripted:
    """A provider of scripted runners."""

    name: SandboxName = "process"

    def __init__(self, act: Act, on_hello: Callable[[Script], None] | None = None) -> None:
        self._act, self._on_hello = act, on_hello

    def unavailable(self) -> str | None:
        return None

    def image_digest(self) -> str | None:
        return None

    def launch(self, launch: Launch) -> _Sandbox:
        script = Script(launch, self._act, self._on_hello)
        script.start()
        return _Sandbox(script)
