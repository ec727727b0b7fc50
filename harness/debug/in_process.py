"""The one call of a test in this process, which keeps its inputs, outputs and the expected outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch

from harness.arena.shapes import copied
from harness.judge.correctness.cases import Correctness
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.runner.device import RunnerDevice
from harness.runner.kernel import BuiltKernel
from harness.runner.serve import Server
from harness.verdict import CaseResult
from harness.wire import commands, replies

Tensors = dict[str, torch.Tensor]


@dataclass
class DebuggedCall:
    """The tensors of the call, by name."""

    inputs: Tensors = field(default_factory=dict)
    """Copies: as the call gets them, an `inout` included."""
    expected: Tensors = field(default_factory=dict)
    """What the reference gives for them, in float64, where an output is not of integers."""
    outputs: Tensors = field(default_factory=dict)
    """As the call left them; empty before it."""


def run_test(
    case: GradedCase, kernel: BuiltKernel, device: RunnerDevice, about_to_call: Callable[[DebuggedCall], None]
) -> tuple[CaseResult, DebuggedCall]:
    """Make the call and check it as the judge does; `about_to_call` gets the tensors before.

    Raises:
        Exception: whatever the submission raises.
    """
    here = _Here(case, Server(device, kernel), about_to_call)
    result = Correctness().run(cast(Session, here), case, case.name)  # what it raises keeps the tensors, for a debugger
    here.server.obey(commands.Release(), ())
    return result, here.call


class _Here:
    """Stands for a session with a runner: its commands are carried out in this process, however long they take."""

    def __init__(self, case: GradedCase, server: Server, about_to_call: Callable[[DebuggedCall], None]) -> None:
        self._case, self.server, self._about_to_call = case, server, about_to_call
        self.call = DebuggedCall()

    def ask(
        self,
        command: commands.Command,
        expect: type[replies.Reply],
        *,
        limit: TimeLimit,
        doing: str,
        descriptors: Sequence[int] = (),
    ) -> replies.Reply:
        """Carry out a command as a runner does; a call is announced first, and its tensors are copied."""
        if not isinstance(command, commands.Call):
            return self.server.obey(command, descriptors)
        tensors = self._tensors()
        given = {slot.tensor.name for slot in self._case.layout.slots if slot.tensor.role != "output"}
        self.call.inputs = {name: copied(tensor) for name, tensor in tensors.items() if name in given}
        stacked = {name: tensor[None] for name, tensor in self.call.inputs.items()}
        self.call.expected = {name: truth[0] for name, truth in self._case.truth(stacked, 1).truth.items()}
        self._about_to_call(self.call)
        try:
            return self.server.obey(command, ())
        finally:
            written = {slot.tensor.name for slot in self._case.layout.outputs}
            self.call.outputs = {name: copied(tensor) for name, tensor in tensors.items() if name in written}

    def _tensors(self) -> Tensors:
        """The tensors that the kernel is about to get."""
        [arguments] = self.server.bound.arguments
        given = (argument for argument in arguments if argument is not None)
        flat = [tensor for argument in given for tensor in (argument if isinstance(argument, list) else [argument])]
        return dict(zip((slot.tensor.name for slot in self._case.layout.slots), flat, strict=True))
