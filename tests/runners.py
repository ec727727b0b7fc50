"""Runners played by a thread of the test, so that a thousand hostile conversations take seconds.

A `Script` answers the handshake and the build as an honest runner does, then does what its test says. `doubling` is
an honest one for `y = 2 * x`, as slow as a test wants it.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from harness.sandbox import Breach, Exit, Launch
from harness.verdict import SandboxName
from harness.wire import frame, protocol

Act = Callable[["Script", int, dict[str, Any]], None]


class Script(threading.Thread):
    """One runner: `act` is called for each command after the build, with its token and its fields."""

    def __init__(self, launch: Launch, act: Act, on_hello: Callable[[Script], None] | None) -> None:
        super().__init__(daemon=True)
        self._launch, self._act, self._on_hello = launch, act, on_hello
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.descriptors: list[int] = []
        """The descriptors that came with the last command."""
        self._arenas: list[int] = []
        self.kernel: Doubling | None = None
        self.built = self.gone = False

    def run(self) -> None:
        try:
            self.socket.connect(str(self._launch.socket))
            if self._on_hello:
                self._on_hello(self)
                return
            self.reply(0, "Hello", protocol=protocol.PROTOCOL, python="3.11.7")
            while True:
                token, kind, body = self.receive()
                if kind == "Welcome":
                    self.reply(token, "Ready", torch="2.13.0", triton="3.7.1")
                elif kind == "Build":
                    self.built = True
                    self.reply(token, "Built", log="", interpreted=False)
                else:
                    self._act(self, token, {"kind": kind, **body})
        except (OSError, EOFError):
            pass  # the judge hung up
        finally:
            self.gone = True
            self.socket.close()
            self._close_descriptors()
            self._close(self._arenas)
            self.kernel = None

    def arenas(self) -> list[int]:
        """The arenas as a launcher has them: from the last command, or else those that it has mapped."""
        if self.descriptors:
            self._close(self._arenas)
            self._arenas = [os.dup(descriptor) for descriptor in self.descriptors]
        return self._arenas

    def receive(self) -> tuple[int, str, dict[str, Any]]:
        self._close_descriptors()
        packet, self.descriptors, _, _ = socket.recv_fds(self.socket, frame.MAX_FRAME_BYTES, 2)
        if not packet:
            raise EOFError
        body = json.loads(packet)
        return body.pop("token"), body.pop("kind"), body

    def reply(self, token: int, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"token": token, "kind": kind, **fields}).encode())

    def _close_descriptors(self) -> None:
        self._close(self.descriptors)

    def _close(self, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.close(descriptor)
        descriptors.clear()


def answering(kind: str, **fields: Any) -> Act:
    """Answer a command with this, and do nothing else."""
    return lambda script, token, body: script.reply(token, kind, **fields)


def failing(outcome: str, message: str, *, fatal: bool = False) -> Act:
    return answering("Failed", outcome=outcome, message=message, traceback="", fatal=fatal)


def but(usual: Act, **others: Act) -> Act:
    """Act as usual, but as the others do on commands of their kinds."""
    return lambda script, token, body: others.get(body["kind"], usual)(script, token, body)


def doubling(seconds: Callable[[Script, dict[str, Any]], float] = lambda script, body: 0.0) -> Act:
    """Act honestly, with a kernel that doubles, and take so many seconds before each answer."""

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        time.sleep(seconds(script, body))
        script.kernel = script.kernel or Doubling()
        kind, fields = script.kernel.obey(script, body)
        script.reply(token, kind, **fields)

    return act


class Doubling:
    """An honest runner's memory of one conversation, whose kernel doubles one float32 vector."""

    def __init__(self) -> None:
        self._declared: list[dict[str, Any]] = []
        self._bind: dict[str, Any] = {}
        self._inputs = self._outputs = np.empty(0, np.uint8)

    def obey(self, script: Script, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Do what a command says; returns the kind and the fields of the reply."""
        match body["kind"]:
            case "Declare":
                self._declared = body["arguments"]
            case "Bind":
                self._bind = body
                inputs, outputs = script.descriptors
                self._inputs, self._outputs = _mapped(inputs), _mapped(outputs, writable=True)
            case "Call":
                self._double(body["sets"])
            case "MapOutputs":
                self._outputs = _mapped(*script.descriptors, writable=True)
            case "Round":
                self._inputs = _mapped(*script.descriptors)
                self._double(range(body["calls"]))
        return "Done", {}

    def _double(self, sets: Iterable[int]) -> None:
        x, y = self._declared
        count = x["shape"][0]
        for k in sets:
            at, to = x["offset"] + k * self._bind["input_stride"], y["offset"] + k * self._bind["output_stride"]
            given = self._inputs[at : at + 4 * count].view(np.float32)
            np.multiply(given, 2, out=self._outputs[to : to + 4 * count].view(np.float32))


def _mapped(descriptor: int, *, writable: bool = False) -> Any:
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return np.frombuffer(mmap.mmap(descriptor, 0, prot=access), np.uint8)


class _Sandbox:
    def __init__(self, script: Script, on_close: Callable[[], None]) -> None:
        self._script, self._on_close = script, on_close

    def ended(self) -> Exit | None:
        return Exit(0, None) if self._script.gone else None

    def breach(self) -> Breach | None:
        return None

    def cpu_ns(self) -> int:
        return 0  # a thread of the judge's own process

    def close(self) -> None:
        self._script.socket.close()
        self._on_close()

    def startup_log(self) -> str:
        return ""


class Scripted:
    """A provider of scripted runners."""

    name: SandboxName = "process"

    def __init__(
        self,
        act: Act,
        on_hello: Callable[[Script], None] | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._act, self._on_hello, self._on_close = act, on_hello, on_close

    def unavailable(self) -> str | None:
        return None

    def image_digest(self) -> str | None:
        return None

    def shows(self, path: Path) -> bool:
        return False

    def launch(self, launch: Launch) -> _Sandbox:
        script = Script(launch, self._act, self._on_hello)
        script.start()
        return _Sandbox(script, self._on_close)
