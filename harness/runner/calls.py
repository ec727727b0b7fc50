"""The calls bound to one set of arenas: made plainly, recorded, and profiled."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import torch

from harness.arena import Window
from harness.runner import foreign, interpreter
from harness.runner.device import CapturedCall, Device
from harness.runner.kernel import Kernel, OneCall, named
from harness.wire import commands

_WARMUPS = 3
_past: list[list[Any]] = []
"""The arguments of earlier calls, emptied. Who keeps something by the `id` of a tensor or list finds it under no other
one's, whatever Python's allocator does: an id that was freed is given out again.
"""


class Calls:
    """`sets` calls of one kernel; set k's tensors are k strides into the windows, at addresses that never change."""

    def __init__(
        self,
        bind: commands.Bind,
        declared: Sequence[commands.Argument],
        kernel: Kernel,
        device: Device,
        inputs: Window,
        outputs: Window,
        host: Window | None,
    ) -> None:
        self._bind, self._declared, self._kernel, self._device = bind, declared, kernel, device
        self._inputs, self._outputs, self._host = inputs, outputs, host
        self.arguments: list[list[Any]] = []
        """The tensors of each call, in the order of its arguments: those of a list are one, an absent one is None."""
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

    def _place(self, argument: commands.Argument) -> tuple[Window, int]:
        """The window that a tensor is in, and how far apart calls are there."""
        if argument.writable:
            return self._outputs, self._bind.output_stride
        if argument.host and self._host is not None:
            return self._host, self._bind.host_stride
        return self._inputs, self._bind.input_stride

    def call(self, k: int) -> None:
        self._calls[k]()

    def call_plainly(self, sets: Sequence[int]) -> object:
        """Returns what the last call returned."""
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
        """Hand over the recording."""
        with os.fdopen(os.dup(file), "wb") as out:
            out.write(self._record.file)
        if scratch is not None:
            self._record.copy_scratch(scratch)

    def profile(self, asked: commands.Profile) -> dict[str, bytes]:
        """Profile calls, each on the next set."""
        from harness.runner.profile import profiled  # a grading needs no profiler

        # In Triton's interpreter a call is a million calls of Python functions, which say nothing of its speed.
        return profiled(self._device, self.call, self._bind.sets, asked, stacks=lambda: not interpreter.launched())

    def draw(self, command: commands.Draw) -> None:
        """Let a foreign reference, which was built as a submission, make the inputs of set 0."""
        drawn = foreign.draw(command.form, self._bind.forms, command.seed, json.loads(command.options))
        given = {each.group or each.name for each in self._declared if not each.writable}
        for name, tensor in self._named(0).items():
            if name in given:
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
            for each in (each for arguments in self.arguments for each in arguments if each is not None):
                for tensor in each if isinstance(each, list) else [each]:
                    tensor.set_()  # without memory from here on
        self.arguments, self._calls = [], []
        for window in self._windows():
            window.close()

    def _windows(self) -> list[Window]:
        return [each for each in (self._inputs, self._outputs, self._host) if each is not None]
