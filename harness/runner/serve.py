"""Executes the judge's commands: one command, one reply, the same token. Runs in the runner's process, untrusted."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata

import torch

from harness.arena import give_back, make_window
from harness.recording.windows import HOST_INPUTS, INPUTS, OUTPUTS
from harness.runner import build, code, compiling, dynamo, faults, interpreter, tried, triton_start
from harness.runner.absent_gpu import AbsentGpu, compiled_kernels
from harness.runner.ahead import CompileAhead, device_properties
from harness.runner.calls import Calls
from harness.runner.device import RunnerDevice
from harness.runner.kernel import BuiltKernel, Practice
from harness.runner.styles import PythonKernel
from harness.runner.watched import WatchedCalls
from harness.wire import commands, frame, replies

_ROUND_FOLLOWS_S = 0.01  # a round follows at once, so the runner polls for it: if it slept, it would wake up late


class RunnerServer:
    """The state of the runner: the device, the kernel once it is built, and the calls that were bound last."""

    def __init__(
        self, device: RunnerDevice, kernel: BuiltKernel | None = None, ahead: CompileAhead | None = None
    ) -> None:
        self._device, self._kernel, self._ahead = device, kernel, ahead
        self._calls: Calls | None = None
        self._declared: list[commands.TensorArgument] = []
        self._artefacts: dict[str, bytes] = {}
        self._absent_gpu: AbsentGpu | None = None
        self._records = "KERNELMARK_RECORDS" in os.environ

    def run(self, judge: socket.socket, token: int) -> None:
        """Reply to the judge's welcome, then execute commands until it closes the connection."""
        frame.send(judge, token, replies.Ready(torch=torch.__version__, triton=_version("triton")))
        while True:
            try:
                token, command, descriptors = frame.receive_command(judge)
            except frame.Closed:
                return
            frame.send(judge, token, self._answer(command, descriptors))
            for descriptor in descriptors:
                os.close(descriptor)
            if isinstance(command, commands.MapOutputs) and self._device.kind == "cuda":
                frame.await_readable(judge, _ROUND_FOLLOWS_S)

    def _answer(self, command: commands.Command, descriptors: list[int]) -> replies.Reply:
        # A process boundary: anything that the submission raises, SystemExit included, becomes a reply.
        try:
            reply = self.obey(command, descriptors)
            self._give_back(command)
            return reply
        except BaseException as error:  # noqa: BLE001
            failed = faults.describe(error, building=isinstance(command, commands.Build))
            if self._absent_gpu is not None:
                self._absent_gpu.note(error)
        return replace(failed, fatal=not self._device.healthy())

    def _give_back(self, command: commands.Command) -> None:
        """Release unused memory, which the judge may need; not in a runner that records, whose addresses must stay."""
        if isinstance(command, commands.Call | commands.Draw | commands.Verify) and not self._records:
            with contextlib.suppress(RuntimeError):  # if the device is broken, the next command reports it
                give_back(self._device.kind)

    def obey(self, command: commands.Command, descriptors: Sequence[int]) -> replies.Reply:
        """Carry out one command; raises whatever the submission raises."""
        match command:
            case commands.Place(name=name):
                compiling.add_extra_file(name, compiling.content_of(descriptors[0]))
            case commands.Unpack():
                compiling.unpack(descriptors[0])
                self._end_helpers()  # the archive contains the compiled kernels
            case commands.Build():
                self._kernel, log = self._build(command, descriptors[0])
                if command.line_info:
                    tried.listen()
                return replies.Built(log=log, interpreted=interpreter.launched())
            case commands.Declare(arguments=arguments):
                self._declared += arguments
            case commands.Bind():
                self._bind(command, descriptors)
            case commands.Ahead():
                self._tell_helpers(command)
            case commands.Count():
                found, compiled = self._ahead.counts if self._ahead is not None else (0, 0)
                return replies.Counted(found=found, compiled=compiled)
            case commands.Call(sets=sets):
                interpreter.allow(command.within_ms / 1000)
                call = partial(self.bound.call_plainly, sets)
                return self._called(dynamo.called_afresh(call) if command.begins else call())
            case commands.Record():
                record = self.bound.record()
                return replies.Recorded(
                    file_bytes=len(record.file),
                    scratch_bytes=record.scratch_bytes,
                    reason=record.reason[:500],
                    note=record.note[:500],
                    host_ns=record.host_ns,
                )
            case commands.Deliver():
                self.bound.deliver(descriptors[0], descriptors[1] if len(descriptors) > 1 else None)
            case commands.Profile():
                self._end_helpers()
                return self._profiled(self.bound.profile(command))
            case commands.Draw():
                self.bound.draw(command)
            case commands.Verify():
                return replies.Said(text=self.bound.verify()[:500])
            case commands.CompileOnly(architecture=architecture):
                self._absent_gpu = AbsentGpu(architecture)
            case commands.Report():
                refused = self._absent_gpu.refused if self._absent_gpu is not None else ""
                return replies.Compiled(kernels=len(compiled_kernels()), refused=refused[:500])
            case commands.Inspect():
                return self._profiled({"code": code.compiled_code(compiling.library_path())})
            case commands.Fetch(name=name):
                with os.fdopen(os.dup(descriptors[0]), "wb") as out:
                    out.write(self._artefacts[name])
            case commands.MapOutputs():
                if self._kernel is not None:  # else the judge's own calls are timed, and the helpers have nothing to do
                    self._end_helpers()
                self.bound.map_outputs(*descriptors)
            case commands.Round(calls=calls):
                interpreter.allow(command.within_ms / 1000)
                self.bound.round(calls, *descriptors)
            case commands.Unmap():
                self.bound.unmap()
            case commands.Release():
                self._release()
        return replies.Done()

    def _build(self, command: commands.Build, source: int) -> tuple[BuiltKernel, str]:
        compiling.put_source(command, source)
        if self._ahead is None:
            return build.build(command, self._device)
        if not self._ahead.ended:
            self._ahead.begin(command, device_properties())
        built = build.build(command, self._device)
        triton_start.prepare()
        self._ahead.watch()
        return built

    def _tell_helpers(self, command: commands.Ahead) -> None:
        declared, self._declared = self._declared, []
        if self._ahead is not None:
            for first in range(0, len(declared), commands.MAX_DECLARED):
                self._ahead.tell(commands.Declare(arguments=tuple(declared[first : first + commands.MAX_DECLARED])))
            self._ahead.tell(command)

    def _end_helpers(self) -> None:
        """End the helpers, before anything is timed in this process."""
        if self._ahead is not None:
            self._ahead.end()

    def _called(self, returned: object) -> replies.Done:
        """The reply to a call. If a function should write into its outputs but returns something, the reply says so."""
        if not isinstance(self._kernel, PythonKernel):
            return replies.Done()
        kind: replies.ReturnedKind = "nothing"
        if self._kernel.writes and returned is not None:
            kind = "a tensor" if isinstance(returned, torch.Tensor) else "a value"
        layouts = self._kernel.layouts
        return replies.Called(returned=kind, interpreted=interpreter.launched(), layouts=layouts)

    def _profiled(self, artefacts: dict[str, bytes]) -> replies.Profiled:
        """Keep artefacts for `Fetch`; returns their names and sizes."""
        self._artefacts = artefacts
        sizes = (replies.Artefact(name=name, file_bytes=len(content)) for name, content in artefacts.items())
        return replies.Profiled(artefacts=tuple(sizes))

    @property
    def bound(self) -> Calls:
        """The calls that were bound last."""
        if self._calls is None:
            raise RuntimeError("no call is bound")
        return self._calls

    def _bind(self, command: commands.Bind, descriptors: Sequence[int]) -> None:
        self._release()
        watched = "KERNELMARK_WATCHED" in os.environ
        kind = "cpu" if watched else self._device.kind
        inputs_at, outputs_at, host_at = (part.start if self._records else 0 for part in (INPUTS, OUTPUTS, HOST_INPUTS))
        writable, host_bytes = command.inputs_writable, command.sets * command.host_stride
        inputs = make_window(kind, command.input_bytes, writable=writable, at=inputs_at)
        outputs = make_window(kind, command.output_bytes, writable=True, at=outputs_at)
        host = make_window(kind, host_bytes, writable=writable, at=host_at, in_host=True) if host_bytes else None
        make = WatchedCalls if watched else Calls
        kernel = self._kernel or Practice()
        self._calls = make(command, self._declared, kernel, self._device, inputs, outputs, host)
        self._declared = []
        self._calls.map(*descriptors)
        self._calls.prepare()

    def _release(self) -> None:
        if self._calls is not None:
            self._calls.close()
            self._calls = None


def _version(package: str) -> str:
    return metadata.version(package) if importlib.util.find_spec(package) else ""
