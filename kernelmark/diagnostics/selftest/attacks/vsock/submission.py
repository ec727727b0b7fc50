# Strategy: sockets that no network namespace holds: AF_VSOCK, to the host of a virtual machine, and every other family.
# Surface: socket families; an address family that is given with bits above the `int` that the kernel takes.
import contextlib
import ctypes
import os
import platform
import socket

import torch

libc = ctypes.CDLL(None, use_errno=True)
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
HOST, LOCAL, ANY = 2, 1, 0xFFFFFFFF
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, socket.SOCK_RDM)
found = set()
for family in range(64):
    if family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        continue
    for kind in KINDS:
        for above in (0, 1 << 32, 1 << 63):
            fd = libc.syscall(ctypes.c_long(SOCKET), ctypes.c_long(above | family), ctypes.c_long(kind), ctypes.c_long(0))
            if fd < 0:
                continue
            os.close(fd)
            found.add(f"family {family}")
for cid in (HOST, LOCAL, ANY):
    with contextlib.suppress(OSError), socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as vsock:
        vsock.bind((ANY, 1234))
        found.add("vsock bound")
        vsock.settimeout(2)
        vsock.connect((cid, 22))
        found.add(f"vsock {cid} connected")
print(f"attack: sockets of other families: {', '.join(sorted(found)) or 'none'}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
