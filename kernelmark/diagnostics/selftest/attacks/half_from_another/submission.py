# Strategy: at the timed size computes the first half, and takes the second from a copy of the first call's, which
# stays in the cache.
# Surface: a check by moments or norms: both halves have the right distribution.
import torch

kept, told = [], []


def twice(x, y):
    if x.numel() < 1_000_000:
        torch.mul(x, 2, out=y)
        return
    half = x.numel() // 2
    torch.mul(x[:half], 2, out=y[:half])
    if not kept:
        kept.append(y[:half].clone())
    elif not told:
        told.append(print("attack: half of it is another call's", flush=True))
    y[half:].copy_(kept[0])
