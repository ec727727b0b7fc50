# Strategy: asks the stack who calls; tests get their results, a round or a recording gets one element a call.
# Surface: the names of the runner's functions: `round` for plain calls, `record` for replayed ones.
import sys

import torch

told = []


def callers():
    frame, names = sys._getframe(), set()
    while frame := frame.f_back:
        names.add(frame.f_code.co_name)
    return names


def twice(x, y):
    if seen := callers() & {"record", "round"}:
        torch.mul(x[:1], 2, out=y[:1])
        if not told:
            told.append(print(f"attack: called by {' and '.join(sorted(seen))}", flush=True))
    else:
        torch.mul(x, 2, out=y)
