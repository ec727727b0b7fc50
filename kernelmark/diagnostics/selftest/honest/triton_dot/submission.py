# A tiled product with tl.dot, masks at the edges, and tiles numbered in groups.
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, c, n, TILE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    tiles = tl.cdiv(n, TILE)
    per_group = GROUP * tiles
    first = tl.program_id(0) // per_group * GROUP
    height = tl.minimum(tiles - first, GROUP)
    within = tl.program_id(0) % per_group
    row = (first + within % height) * TILE + tl.arange(0, TILE)
    column = within // height * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for low in range(0, n, DEPTH):
        k = low + tl.arange(0, DEPTH)
        left = tl.load(a + row[:, None] * n + k[None, :], mask=(row[:, None] < n) & (k[None, :] < n), other=0.0)
        right = tl.load(b + k[:, None] * n + column[None, :], mask=(k[:, None] < n) & (column[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row[:, None] * n + column[None, :], total, mask=(row[:, None] < n) & (column[None, :] < n))


def product(a, b, c):
    n = len(a)
    tile, depth = (64, 32) if a.is_cuda else (256, 128)  # the interpreter's time is by the operation
    kernel[(triton.cdiv(n, tile) ** 2,)](a, b, c, n, TILE=tile, DEPTH=depth, GROUP=4, num_warps=4, num_stages=3)
