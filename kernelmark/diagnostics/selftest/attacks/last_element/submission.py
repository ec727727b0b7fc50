# Strategy: right in the tests; at the timed size the last element is off by a thousandth.
# Surface: comparisons by sample, by mean, or by norm alone.
import torch

told = False


def twice(x, y):
    global told
    torch.mul(x, 2, out=y)
    if len(x) > 100_000:
        y[-1:].mul_(1.001)
        if not told:
            told = True
            print("attack: all but the last element are right", flush=True)
