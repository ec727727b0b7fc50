# Strategy: right until the first rounds must be over, 0.15 s after the first call of the timed size; then nothing.
# Surface: the stages of a grading, which follow each other in about the same times.
import time

import torch

first, told = [], []


def twice(x, y):
    if x.numel() == 1_000_000 and not first:
        first.append(time.monotonic())
    if first and time.monotonic() - first[0] > 0.15:
        if not told:
            told.append(print("attack: the tests must be over", flush=True))
        return
    torch.mul(x, 2, out=y)
