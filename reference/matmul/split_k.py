"""Matrix multiplication in Triton where several programs share the sum of a tile, and add their parts by atomics.

Of up to SPLIT_K programs each takes every SPLIT_K-th step of k, and adds its float32 sum, rounded to c's dtype, to c,
which is 0 before. With few tiles and a long k this keeps all multiprocessors reading. The price: c is cleared first, is
read and written once a part, and is rounded once a part; parts arrive in any order, so equal inputs need not give equal
bits. So a product with enough tiles is not split: it is the plain product, without clearing and atomics. It is that for
every size with SPLIT_K = 1.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

SPLIT_K = 8
ENOUGH = 256  # programs to keep all multiprocessors of a large GPU busy


@triton.jit
def tile_kernel(
    a, b, c, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(tl.program_id(1) * TILE_K, k, SPLIT * TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        right = tl.load(b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    part = total.to(c.dtype.element_ty)
    inside = (row < m) & (column < n)
    if SPLIT == 1:
        tl.store(c + row * n + column, part, mask=inside)
    else:
        tl.atomic_add(c + row * n + column, part, mask=inside, sem="relaxed")


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a @ b: [m, k], [k, n], [m, n], all of one dtype."""
    (m, k), n = a.shape, b.shape[1]
    if a.dtype is torch.float32:
        tile_m, tile_n, tile_k, warps = 64, 64, 32, 4
    elif m <= 16:
        tile_m, tile_n, tile_k, warps = 16, 128, 128, 4
    else:
        tile_m, tile_n, tile_k, warps = 128, 128, 64, 8
    tiles = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    # Each part is worth four steps at least.
    split = min(SPLIT_K, triton.cdiv(ENOUGH, tiles), triton.cdiv(k, 4 * tile_k))
    if split > 1:
        c.zero_()
    tile_kernel[(tiles, split)](
        a, b, c, m, n, k,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, SPLIT=split, num_warps=warps, num_stages=4,
    )  # fmt: skip
