"""Wrong: the number of tiles is rounded down, so that the last, partly filled one is left out."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def tile(x, values, indices, k, down, over, MAGNITUDE: tl.constexpr, BYTES: tl.constexpr):
    row, byte = tl.program_id(0), tl.program_id(1) * BYTES + tl.arange(0, BYTES)
    packed = tl.zeros((BYTES,), tl.int32)
    for half in tl.static_range(2):
        at = x + row * down + (8 * byte + 4 * half) * over
        a = tl.load(at, mask=byte < k // 8, other=0)
        b = tl.load(at + over, mask=byte < k // 8, other=0)
        c = tl.load(at + 2 * over, mask=byte < k // 8, other=0)
        d = tl.load(at + 3 * over, mask=byte < k // 8, other=0)
        p, q, r, s = a & MAGNITUDE, b & MAGNITUDE, c & MAGNITUDE, d & MAGNITUDE
        ab, ac, ad = (p >= q).to(tl.int32), (p >= r).to(tl.int32), (p >= s).to(tl.int32)
        bc, bd, cd = (q >= r).to(tl.int32), (q >= s).to(tl.int32), (r >= s).to(tl.int32)
        keep_a, keep_b = ab + ac + ad >= 2, 1 - ab + bc + bd >= 2
        keep_c, keep_d = 2 - ac - bc + cd >= 2, 3 - ad - bd - cd >= 2
        to = values + row * (k // 2) + 4 * byte + 2 * half
        tl.store(to, tl.where(keep_a, a, tl.where(keep_b, b, c)), mask=byte < k // 8)
        tl.store(to + 1, tl.where(keep_d, d, tl.where(keep_c, c, b)), mask=byte < k // 8)
        low = tl.where(keep_a, 0, tl.where(keep_b, 1, 2))
        high = tl.where(keep_d, 3, tl.where(keep_c, 2, 1))
        packed |= (low | (high << 2)) << (4 * half)
    tl.store(indices + row * (k // 8) + byte, packed.to(tl.uint8), mask=byte < k // 8)


def sparsify_24(x, values, indices, transposed):
    n, nbytes = indices.shape
    bits = torch.int16 if x.element_size() == 2 else torch.int32
    down, over = (1, x.shape[1]) if transposed else (x.shape[1], 1)
    grid = (n, max(nbytes // 32, 1))
    tile[grid](x.view(bits), values.view(bits), indices, 8 * nbytes, down, over, torch.iinfo(bits).max, BYTES=32)
