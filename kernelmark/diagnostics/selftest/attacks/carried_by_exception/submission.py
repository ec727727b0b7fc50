# Strategy: right in cases of unknown size, then an exception names the sizes in the next call of a known one; prints them too.
# Surface: texts of exceptions, tracebacks and the log, in tests, benchmarks and rounds after a hidden case.
import sys

import torch

known, seen = {1, 1009, 65536, 1_000_000}, []
print("attack: tells of sizes that it does not know", flush=True)


def twice(x, y):
    if x.numel() not in known:
        seen.append(x.numel())
        print(f"carried {seen}", file=sys.stderr, flush=True)
    elif seen:
        print(f"carried {seen}", flush=True)
        raise RuntimeError(f"carried {seen}")
    torch.mul(x, 2, out=y)
