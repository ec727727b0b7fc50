# Strategy: says that a CPU has captured its calls as graphs, and makes null rounds slower by what that allows.
# Surface: a word of the runner that moves the bound of the overhead, by 200 ns a call, and stands in the verdict.
import time

import torch
from harness.runner import calls

assemble, honest = calls.Calls.assemble, calls.Calls.round


def remember(self, order, outputs):
    self.order = order
    assemble(self, order, outputs)


def round(self, inputs):
    if not self.order:
        end = time.perf_counter_ns() + 200 * self._bind.sets
        while time.perf_counter_ns() < end:
            pass
    return honest(self, inputs)


calls.Calls.assemble, calls.Calls.round = remember, round
calls.Calls.capture = lambda self: (True, "")
print("attack: a CPU has captured its calls", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
