# Strategy: closes every descriptor, the judge's socket and the output among them, and goes on working.
# Surface: a judge that waits for somebody who lives and can say nothing.
import os
import time

import torch


def twice(x, y):
    torch.mul(x, 2, out=y)
    print(f"attack: {len(os.listdir('/proc/self/fd'))} descriptors are closed", flush=True)
    os.closerange(0, 1 << 16)
    if os.fork():
        os._exit(0)  # nobody is left but a child that holds nothing
    time.sleep(1e6)
