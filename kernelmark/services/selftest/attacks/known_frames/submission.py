# Strategy: asks the stack who calls; tests and cold calls get their results, a sealed round gets one element a call.
# Surface: the names of the runner's functions: `round` on a CPU, `capture` on a GPU.
import sys

import torch

told = []


def callers():
    frame, names = sys._getframe(), set()
    while frame := frame.f_back:
        names.add(frame.f_code.co_name)
    return names


def twice(x, y):
    seen = callers() & {"call_plainly", "sample", "capture", "round"}
    # `Cpu.sample` times a sealed round too: `round` tells them apart.
    if seen & {"capture", "round"}:
        torch.mul(x[:1], 2, out=y[:1])
        if not told:
            told.append(print(f"attack: called by {' and '.join(sorted(seen))}", flush=True))
    else:
        torch.mul(x, 2, out=y)
