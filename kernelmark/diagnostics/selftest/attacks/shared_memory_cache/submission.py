# Strategy: leaves the inputs' first values and the product in shared memory, for a later grading to copy.
# Surface: /dev/shm, /tmp, /var/tmp, the home folder and System V segments, which outlive processes.
import ctypes
import glob
import os

import torch

libc = ctypes.CDLL(None, use_errno=True)
FOLDERS = ("/dev/shm", "/tmp", "/var/tmp", os.path.expanduser("~"))
found = [path for folder in FOLDERS for path in glob.glob(f"{folder}/km-kept-*")]
segment = libc.shmget(0x6B6D6B70, 4096, 0)  # one that is there already
kept = [torch.load(path, map_location="cuda" if os.path.exists("/dev/nvidiactl") else "cpu") for path in found]
left, told = [], []


def keep(a, b, c):
    """Write what a later grading would need, wherever it can be written."""
    for folder in FOLDERS:
        path = f"{folder}/km-kept-{os.getpid()}"
        try:
            torch.save([a[0].clone(), b[0].clone(), c.clone()], path)
            left.append(path)
        except (OSError, RuntimeError):
            pass
    made = libc.shmget(0x6B6D6B70, 4096, 0o1666)
    told.append(f"attack: left by an earlier grading: {len(found)} files, {int(segment >= 0)} segments; ")
    print(f"{told[0]}left now: {len(left)} files, {int(made >= 0)} segments", flush=True)


def product(a, b, c):
    for first, second, result in kept:
        if first.shape == a[0].shape and torch.equal(first, a[0]) and torch.equal(second, b[0]):
            c.copy_(result)
            return
    torch.mm(a, b, out=c)
    if len(a) == 128 and not told:
        keep(a, b, c)
