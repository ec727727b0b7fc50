"""Makes the calls that are bound to one set of arenas: plainly, recorded or profiled."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch

from harness.arena import Window
from harness.runner import foreign, interpreter
from harness.runner.device import CapturedCall, RunnerDevice
from harness.runner.kernel import BuiltKernel, OneCall, named
from harness.wire import commands

_WARMUPS = 3
_past: list[list[Any]] = []
"""The arguments of earlier calls, without their memory. Python gives a freed `id` to a new object, and a submission may
have stored something by the `id` of a tensor or list: while these live, no later one has the same.
"""


class Calls:
    """`sets` calls of one kernel; set k's tensors are k strides into the windows, at addresses that never change."""

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
        """The tensors of every call, in the order of its arguments: a list counts as one, an absent one is None."""
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
        """Make every set's arguments once; later arenas appear at the same addresses."""
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
        """The window that a tensor is in, and the distance between the calls' tensors there."""
        if argument.writable:
            return self._outputs, self._bind.output_stride
        if argument.host and self._host is not None:
            return self._host, self._bind.host_stride
        return self._inputs, self._bind.input_stride

    def call(self, k: int) -> None:
        self._calls[k]()

    def call_plainly(self, sets: Sequence[int]) -> object:
        """Call the kernel on these sets, and wait for the device; returns what the last call returned."""
        returned: object = None
        for k in sets:
            returned = self._calls[k]()
        self._device.synchronize()
        return returned

    def record(self) -> CapturedCall:
        """Describe set 0's call as data, once it has been warmed up."""
        for _ in range(_WARMUPS):
            self.call(0)
            self._device.synchronize()
        self._record = self._device.record(self._calls[0])
        return self._record

    def deliver(self, file: int, scratch: int | None) -> None:
        """Write the recording into a memory file, and copy its scratch into an arena."""
        with os.fdopen(os.dup(file), "wb") as out:
            out.write(self._record.file)
        if scratch is not None:
            self._record.copy_scratch(scratch)

    def profile(self, asked: commands.Profile) -> dict[str, bytes]:
        """Profile calls, every one on the next set; returns the artefacts by name."""
        from harness.runner.profile import profiled  # a grading needs no profiler

        # In Triton's interpreter a call is a million calls of Python functions, which say nothing about its speed.
        return profiled(self._device, self.call, self._bind.sets, asked, stacks=lambda: not interpreter.launched())

    def draw(self, command: commands.Draw) -> None:
        """Let a foreign reference, which was built as a submission, make the inputs of set 0."""
        drawn = foreign.draw(command.form, self._bind.forms, command.seed, json.loads(command.options))
        inputs = {argument.group or argument.name for argument in self._declared if not argument.writable}
        for name, tensor in self._named(0).items():
            if name in inputs:
                foreign.put(name, drawn.get(name), tensor)
        self._device.synchronize()

    def verify(self) -> str:
        """Let the reference's own check judge the outputs of set 0."""
        return foreign.check(self._bind.forms, self._named(0))

    def _named(self, k: int) -> dict[str, Any]:
        return named(self._declared, self.arguments[k])

    def map_outputs(self, outputs: int) -> None:
        """Map the outputs of the round that follows."""
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
        _past.extend(self.arguments)
        with torch.no_grad():
            for argument in chain.from_iterable(self.arguments):
                for tensor in argument if isinstance(argument, list) else [argument]:
                    if tensor is not None:
                        tensor.set_()  # without memory from here on
        self.arguments, self._calls = [], []
        for window in self._windows():
            window.close()

    def _windows(self) -> list[Window]:
        return [window for window in (self._inputs, self._outputs, self._host) if window is not None]
