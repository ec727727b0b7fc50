# Strategy: keeps every round's outputs mapped a second time, and overwrites them with zeros once the clock has stopped,
# and again in every later round: a judge that compares the shared memory then would blame itself, or another round.
# Surface: arenas whose descriptors the runner has had; memory that the judge may use again.
from collections import deque

import torch
from harness.arena import make_window
from harness.runner import calls

map_outputs, unmap, told = calls.Calls.map_outputs, calls.Calls.unmap, []
KEPT = deque(maxlen=2)  # more of them would use a device up


def keep(self, outputs):
    map_outputs(self, outputs)
    if len(KEPT) == KEPT.maxlen:
        KEPT[0][0].close()
    window = make_window(self._device.kind, self._bind.output_bytes, writable=True)
    window.map(outputs)
    KEPT.append((window, window.tensor(0, (self._bind.output_bytes,), "uint8")))


def overwrite(self):
    for _, memory in KEPT:
        memory.zero_()
    self._device.synchronize()
    if len(KEPT) == 2 and not told:
        told.append(print(f"attack: {len(KEPT)} rounds overwritten, {int(KEPT[0][1].sum())} bytes left", flush=True))
    unmap(self)


calls.Calls.map_outputs, calls.Calls.unmap = keep, overwrite


def twice(x, y):
    torch.mul(x, 2, out=y)
