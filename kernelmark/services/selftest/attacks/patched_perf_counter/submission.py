# Strategy: the host's clock in this process stands still, so that every claim is next to nothing.
# Surface: the runner's claimed times on a CPU.
import time

import torch

time.perf_counter_ns = lambda: 0
print("attack: perf_counter_ns stands still", flush=True)


def product(a, b, c):
    torch.mm(a, b, out=c)
