"""Executes the judge's commands: one command, one reply, the same token."""

from __future__ import annotations

import mmap
import os
import socket
import traceback

from harness.errors import DeviceError
from harness.launcher.activity import CuptiActivity
from harness.launcher.calls import LoadedRecording
from harness.launcher.clocks import ClockOffsets, compare
from harness.launcher.device import LauncherDevice
from harness.recording.file import unpack
from harness.wire import checks, commands, frame, replies

_TRACE_CHARACTERS = 8000


class LauncherServer:
    """The state of a launcher: the device, its clocks, and the loaded recording."""

    def __init__(self, judge: socket.socket) -> None:
        self._judge = judge
        self._device, self._clocks = _open()
        self._calls: LoadedRecording | None = None

    def run(self, token: int) -> None:
        """Reply to the judge's welcome, then execute commands until it closes the connection."""
        frame.send(self._judge, token, replies.Ready(torch="", triton=""))
        while True:
            try:
                token, command, descriptors = frame.receive_command(self._judge)
            except frame.Closed:
                return
            frame.send(self._judge, token, self._answer(command, descriptors))
            for descriptor in descriptors:
                os.close(descriptor)

    def _answer(self, command: commands.Command, descriptors: list[int]) -> replies.Reply:
        # A process boundary. Driver errors about a recording are charged to the submission, which wrote it.
        try:
            return self._obey(command, descriptors)
        except (DeviceError, checks.WireError) as error:
            trace = traceback.format_exc()[-_TRACE_CHARACTERS:]
            return replies.Failed(outcome="runtime_error", message=str(error)[:500], traceback=trace, fatal=True)
        except Exception as error:  # noqa: BLE001  # our own failure is reported, with its reason
            trace = traceback.format_exc()[-_TRACE_CHARACTERS:]
            message = " ".join(f"{type(error).__name__}: {error}".split())
            return replies.Broken(message=message[:500], traceback=trace)

    def _obey(self, command: commands.Command, descriptors: list[int]) -> replies.Reply:
        match command:
            case commands.Load():
                if isinstance(self._clocks, DeviceError):
                    raise self._clocks
                with mmap.mmap(descriptors[0], 0, prot=mmap.PROT_READ) as file:
                    packed = unpack(file[:])
                scratch = descriptors[1] if len(descriptors) > 1 else None
                self._unload()
                activity, offsets = self._clocks
                self._calls = LoadedRecording(self._device, activity, packed, command, scratch)
                return replies.Loaded(functions=self._calls.functions, **offsets._asdict())
            case commands.Replay() if self._calls is not None:
                return self._calls.replay(descriptors)
            case commands.Release():
                self._unload()
                return replies.Done()
        raise checks.WireError(f"a launcher does not know {type(command).__name__} here")

    def _unload(self) -> None:
        if self._calls is not None:
            self._calls.close()
            self._calls = None


def _open() -> tuple[LauncherDevice, tuple[CuptiActivity, ClockOffsets] | DeviceError]:
    """Open the device and compare its clocks; returns the error if CUPTI does not work.

    The judge receives that error with the first recording, and times plain calls instead.
    """
    try:
        activity = CuptiActivity()  # before the context exists: then CUPTI sizes its buffers on the device
    except DeviceError as error:
        return LauncherDevice(), error
    device = LauncherDevice()
    try:
        return device, (activity, compare(device, activity))
    except DeviceError as error:
        return device, error
