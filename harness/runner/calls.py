"""Makes the calls that are bound to one set of arenas: plain, recorded or profiled. Untrusted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import torch

from harness.arena import Window
from harness.runner import foreign, interpreter
from harness.runner.device import CapturedCall, RunnerDevice
from harness.runner.kernel import BuiltKernel, OneCall, named
from harness.runner.styles import ReturningCall
from harness.wire import commands

_WARMUPS = 3
_past_arguments: list[list[Any]] = []
"""The arguments of earlier calls, without their memory. A submission may cache something by the `id` of a tensor or
list, and Python reuses the `id` of a freed object. While these objects exist, no later argument has the same `id`.
"""


class Calls:
    """The calls of one `Bind`. The tensors of call k begin k strides into the windows; their addresses never change."""

    def __init__(
        self,
        bind: commands.Bind,
        declared: Sequence[commands.TensorArgument],
        kernel: BuiltKernel,
        device: RunnerDevice,
        inputs: Window,
        outputs: Window,
        host: Window | None,
    ) -> None:
        self._bind, self._declared, self._kernel, self._device = bind, declared, kernel, device
        self._inputs, self._outputs, self._host = inputs, outputs, host
        self.arguments: list[list[Any]] = []
        """The arguments of every call, in order; a list of tensors is one argument, and an absent tensor is None."""
        self._calls: list[OneCall] = []
        self._record = CapturedCall(reason="nothing was recorded")

    def map(self, inputs: int, outputs: int, host: int | None = None) -> None:
        self._map_inputs(inputs, host)
        self._outputs.map(outputs)

    def _map_inputs(self, inputs: int, host: int | None) -> None:
        self._inputs.map(inputs)
        if self._host is not None:
            assert host is not None
            self._host.map(host)

    def prepare(self) -> None:
        """Make the arguments of every call once; later arenas are mapped at the same addresses."""
        self.arguments = [self._arguments_of(k) for k in range(self._bind.sets)]
        prepare = self._kernel.bind(self._bind, self._declared)
        self._calls = [prepare(tensors) for tensors in self.arguments]

    def _arguments_of(self, k: int) -> list[Any]:
        made: list[Any] = []
        groups: dict[str, list[torch.Tensor]] = {}
        for argument in self._declared:
            window, stride = self._place(argument)
            at = argument.offset + k * stride
            tensor = window.tensor(at, argument.shape, argument.dtype, argument.strides)
            if not argument.group:
                made.append(tensor)
            elif argument.group in groups:
                groups[argument.group].append(tensor)
            else:
                made.append(groups.setdefault(argument.group, [tensor]))
        for place in self._bind.absent:
            made.insert(place, None)
        return made

    def _place(self, argument: commands.TensorArgument) -> tuple[Window, int]:
        """A tensor's window, and the distance between the tensors of consecutive calls there."""
        if argument.writable:
            return self._outputs, self._bind.output_stride
        if argument.host and self._host is not None:
            return self._host, self._bind.host_stride
        return self._inputs, self._bind.input_stride

    def call(self, k: int) -> None:
        self._calls[k]()

    def call_plainly(self, sets: Sequence[int]) -> object:
        """Make these calls, and wait for the device; returns what the last call returned."""
        returned: object = None
        for k in sets:
            returned = self._calls[k]()
        self._device.synchronize()
        return returned

    def record(self) -> CapturedCall:
        """Warm up call 0 and record it."""
        host_ns = [self._launched_ns(self._calls[0]) for _ in range(_WARMUPS)]
        self._record = replace(self._device.record(self._calls[0]), host_ns=sorted(host_ns)[_WARMUPS // 2])
        return self._record

    def _launched_ns(self, call: OneCall) -> int:
        """Make a call on an idle device, and wait for it; returns how long the submission's function took."""
        if isinstance(call, ReturningCall):
            took_ns = call.launched_ns()
        else:
            started = time.perf_counter_ns()
            call()
            took_ns = time.perf_counter_ns() - started
        self._device.synchronize()
        return took_ns

    def deliver(self, file: int, scratch: int | None) -> None:
        """Write the recording into a memory file, and copy its scratch memory into an arena."""
        with os.fdopen(os.dup(file), "wb") as out:
            out.write(self._record.file)
        if scratch is not None:
            self._record.copy_scratch(scratch)

    def profile(self, settings: commands.Profile) -> dict[str, bytes]:
        """Profile the calls in turn; returns the artefacts by name."""
        from harness.runner.profile import profiled  # gradings do not need it

        # In Triton's interpreter a call is a million calls of Python functions, whose stacks say nothing useful.
        return profiled(self._device, self.call, self._bind.sets, settings, stacks=lambda: not interpreter.launched())

    def draw(self, command: commands.Draw) -> None:
        """Let a foreign reference, which was built like a submission, make the inputs of call 0."""
        drawn = foreign.draw(command.form, self._bind.forms, command.seed, json.loads(command.options))
        inputs = {argument.group or argument.name for argument in self._declared if not argument.writable}
        for name, tensor in self._named(0).items():
            if name in inputs:
                foreign.put(name, drawn.get(name), tensor)
        self._device.synchronize()

    def verify(self) -> str:
        """Let the foreign reference's own check judge the outputs of call 0."""
        return foreign.check(self._bind.forms, self._named(0))

    def _named(self, k: int) -> dict[str, Any]:
        return named(self._declared, self.arguments[k])

    def map_outputs(self, outputs: int) -> None:
        """Map the outputs of the next round."""
        self._outputs.map(outputs)

    def round(self, calls: int, inputs: int, host: int | None = None) -> None:
        """Map the secret memory, make the calls, synchronize."""
        self._map_inputs(inputs, host)
        self.call_plainly(range(calls))

    def unmap(self) -> None:
        """Unmap the round's memory."""
        for window in self._windows():
            window.unmap()

    def close(self) -> None:
        self._device.synchronize()
        _past_arguments.extend(self.arguments)
        with torch.no_grad():
            for argument in chain.from_iterable(self.arguments):
                for tensor in argument if isinstance(argument, list) else [argument]:
                    if tensor is not None:
                        tensor.set_()  # detaches its memory
        self.arguments, self._calls = [], []
        for window in self._windows():
            window.close()

    def _windows(self) -> list[Window]:
        return [window for window in (self._inputs, self._outputs, self._host) if window is not None]
