"""The worker's side: it waits for one command of its user. Trusted; the worker's program calls it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.judge.session import Sessions
from harness.judge.torch_import import import_torch
from harness.kinds import DeviceKind, SandboxChoice
from harness.problem import Limits
from harness.sandbox import Provider
from kernelmark.grading.resident import place
from kernelmark.project.choice import choose_provider
from kernelmark.project.settings import Settings

_KEY_S = 5.0


class Plan(BaseModel):
    """How a resident worker is started: with the key of its command, and sandboxes like those of the command's job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    sandbox: SandboxChoice
    device: DeviceKind
    limits: Limits
    baselines: int
    replayed: bool
    idle_s: float = 300.0
    """How long it waits for a command."""


class Standby:
    """A worker that waits for its job."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.sandboxes: Sessions | None = None
        """The sandboxes, once they were started."""

    def wait(self, root: Path) -> socket.socket | None:
        """Wait for a command, and return the connection to it; from then on this process writes to its output.

        Returns None if no worker may run here, another one is waiting, the time is up, or a command with another key
        came.

        Raises:
            KernelmarkError: the settings or the sandbox have become invalid.
        """
        plan, where = self._plan, place.socket_of(root)
        provider = choose_provider(Settings.load(root, sandbox=plan.sandbox))
        if where is None or not confines(provider, where) or (listener := place.listen(where)) is None:
            return None
        importing = threading.Thread(target=import_torch, daemon=True)
        try:
            kind = provider, plan.device, plan.limits
            self.sandboxes = Sessions(*kind, baselines=plan.baselines, replayed=plan.replayed, ahead=True)
            self.sandboxes.start_all()
            importing.start()
            connection = self._accepted(listener)
        finally:
            where.unlink(missing_ok=True)
            listener.close()
        if connection is not None:
            importing.join()
        return connection

    def _accepted(self, listener: socket.socket) -> socket.socket | None:
        ends = time.monotonic() + self._plan.idle_s
        while (left_s := ends - time.monotonic()) > 0:
            listener.settimeout(left_s)
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                connection.settimeout(_KEY_S)
                _, uid = place.peer(connection)
                key, outputs = b"", list[int]()
                if uid == os.geteuid():
                    key, outputs, _, _ = socket.recv_fds(connection, place.KEY_BYTES, 2)
                mine = key == self._plan.key.encode() and len(outputs) == 2
                for own, output in enumerate(outputs, start=1):
                    if mine:
                        os.dup2(output, own)
                    os.close(output)
                if mine:
                    connection.settimeout(None)
                    return connection
                connection.close()
                if key:
                    return None
        return None


def confines(provider: Provider, where: Path) -> bool:
    """Whether a submission in this sandbox cannot reach the socket: it runs as another user, and does not see it."""
    other_user = provider.name == "docker" or (provider.name == "bwrap" and os.geteuid() == 0)
    return other_user and not provider.shows(where)
