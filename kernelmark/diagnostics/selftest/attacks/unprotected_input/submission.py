# Strategy: makes the inputs writable, and sets them to 0, so that an output of zeros becomes right.
# Surface: the protection of the inputs, and a truth that is computed from shared memory.
import ctypes

import torch

libc = ctypes.CDLL(None, use_errno=True)
told = False


def twice(x, y):
    global told
    page = x.data_ptr() & ~4095
    refused = libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 3) != 0
    if not told:
        told = True
        print(f"attack: mprotect of the inputs refused: {refused}", flush=True)
    if not refused:
        x.fill_(0)
    y.fill_(0)
