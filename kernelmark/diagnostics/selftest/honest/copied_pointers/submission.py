# Addresses are copied from page-locked memory to the device, as kernels for lists of many tensors do.
import torch
import triton
import triton.language as tl

pool = torch.empty((64, 2), dtype=torch.int64, pin_memory=True)
rows = {}


@triton.jit
def kernel(pointers, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(pointers).to(tl.pointer_type(tl.float32))
    y = tl.load(pointers + 1).to(tl.pointer_type(tl.float32))
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def twice(x, y):
    addresses = x.data_ptr(), y.data_ptr()
    if addresses not in rows:  # each row is written once: a copy from it may not have ended
        rows[addresses] = pool[len(rows)].copy_(torch.tensor(addresses))
    pointers = rows[addresses].to(x.device, non_blocking=True)
    kernel[(triton.cdiv(x.numel(), 1024),)](pointers, x.numel(), BLOCK=1024)
