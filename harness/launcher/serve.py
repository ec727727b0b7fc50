"""Obeys the judge: one command, one reply, the same token."""

from __future__ import annotations

import mmap
import os
import socket

from harness import wire
from harness.errors import DeviceError
from harness.launcher.calls import Calls
from harness.launcher.device import Device
from harness.recording import unpack


class Server:
    """State of one recording: the device, and the calls once it is loaded."""

    def __init__(self, judge: socket.socket) -> None:
        self._judge, self._device = judge, Device()
        self._calls: Calls | None = None

    def run(self, token: int) -> None:
        """Answer the welcome, then commands until the judge closes the connection."""
        wire.send(self._judge, token, wire.Ready(torch="", triton=""))
        while True:
            try:
                token, command, descriptors = wire.receive_command(self._judge)
            except wire.Closed:
                return
            try:
                reply = self._obey(command, descriptors)
            except (DeviceError, wire.WireError) as error:
                # Whatever the driver says of a recording is the submission's: it wrote it.
                reply = wire.Failed(outcome="runtime_error", message=str(error)[:500], traceback="", fatal=True)
            wire.send(self._judge, token, reply)
            for descriptor in descriptors:
                os.close(descriptor)

    def _obey(self, command: wire.Command, descriptors: list[int]) -> wire.Reply:
        match command:
            case wire.Load():
                with mmap.mmap(descriptors[0], 0, prot=mmap.PROT_READ) as file:
                    packed = unpack(file[:])
                scratch = descriptors[1] if len(descriptors) > 1 else None
                self._calls = Calls(self._device, packed, command, scratch)
                return wire.Loaded(functions=self._calls.functions)
            case wire.Replay() if self._calls is not None:
                return self._calls.replay(*descriptors)
        raise wire.WireError(f"a launcher does not know {type(command).__name__} here")
