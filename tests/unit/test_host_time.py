"""The host's time to launch a call: of the submission's function alone, the median of the calls before a recording."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from harness.runner.calls import Calls
from harness.runner.devices import RunnerCpu
from harness.runner.results import Results
from harness.runner.serve import RunnerServer
from harness.runner.styles import PythonKernel
from harness.shared.call import Forms, Style
from harness.wire import commands

FORMS = {"writes": Forms(), "returns": Forms(arguments=("x",), result="y")}
WAITS_NS = COPIES_NS = 1_000_000


class OneTensor:
    """A window whose memory is a new tensor."""

    def tensor(self, *_: object) -> torch.Tensor:
        return torch.zeros(3)


@pytest.mark.parametrize("style", FORMS)
def test_it_is_neither_of_waiting_nor_of_copying_results(style: Style, monkeypatch: pytest.MonkeyPatch) -> None:
    took_ns, clock = iter((900, 35, 40)), [0]

    class WaitingCpu(RunnerCpu):
        def synchronize(self) -> None:
            clock[0] += WAITS_NS

    def entry(x: torch.Tensor, *outputs: torch.Tensor) -> torch.Tensor:
        clock[0] += next(took_ns)
        return x + 1

    take = Results.take

    def slowly(*arguments: Any) -> Any:
        clock[0] += COPIES_NS
        return take(*arguments)

    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock[0])
    monkeypatch.setattr(Results, "take", slowly)
    window: Any = OneTensor()
    declared = [commands.TensorArgument(name, "float32", (3,), name == "y", 0, "") for name in "xy"]
    bind = commands.Bind("entry", (), (), 1, 0, 0, 0, 0, inputs_writable=False, forms=FORMS[style], seed=0)
    kernel = PythonKernel(entry, style=style, signature="entry(x)", device="cpu")
    server = RunnerServer(device := WaitingCpu())
    server._calls = calls = Calls(bind, declared, kernel, device, window, window, None)
    calls.prepare()
    reply: Any = server.obey(commands.Record(), [])
    assert (reply.host_ns, reply.reason) == (40, "a CPU has no graphs")
