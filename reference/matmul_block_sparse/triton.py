"""The product with block-sparse weights in Triton: a program has a tile of tokens and one row of blocks, or part of it.

It goes through the slots of its row. The index says which columns of x to fetch, so that only stored blocks cost
anything. x and the blocks are read through descriptors: the copy engine fetches whole tiles, and zeros where a tile
lies outside the tensor. That is where an empty slot sends it.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tile_kernel(x, values, indices, y, k, slots, last, TILE_M: tl.constexpr, TILE_N: tl.constexpr, BLOCK: tl.constexpr):
    """x, values and y are descriptors; `values` has all blocks one below the other, `last` rows in all.

    Neighbouring programs have the same tokens, whose rows of x they share in L2.
    """
    column = tl.program_id(0) * TILE_N  # of y
    row = tl.program_id(1) * TILE_M
    first = column // BLOCK * slots
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for slot in range(first, first + slots):
        index = tl.load(indices + slot)
        left = x.load([row, tl.where(index < 0, k, index * BLOCK)])
        right = values.load([tl.where(index < 0, last, slot * BLOCK + column % BLOCK), 0])
        total = tl.dot(left, right.T, total)
    y.store([row, column], total.to(y.dtype))


def matmul_block_sparse(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k], [n / block, slots, block, block], [n / block, slots] int32 to [m, n]; -1 marks an empty slot."""
    (m, k), n, (_, slots, block, _) = x.shape, y.shape[1], values.shape
    # Tokens and channels of a tile, warps, stages of the pipeline. With few tokens the time is that of loading the
    # blocks: a row of them is shared by several programs, so that there are some for every multiprocessor. Half of the
    # stages wait for an index, the others for what it leads to.
    if m <= 16:
        tile_m, tile_n, warps, stages = 16, 16, 2, 12
    elif m <= 64:
        tile_m, tile_n, warps, stages = 64, 32, 4, 8
    else:
        tile_m, tile_n, warps, stages = 128, block, 4, 8
    blocks = values.view(-1, block)
    tile_kernel[(n // tile_n, triton.cdiv(m, tile_m))](
        TensorDescriptor.from_tensor(x, [tile_m, block]),
        TensorDescriptor.from_tensor(blocks, [tile_n, block]),
        indices,
        TensorDescriptor.from_tensor(y, [tile_m, tile_n]),
        k, slots, len(blocks), TILE_M=tile_m, TILE_N=tile_n, BLOCK=block, num_warps=warps, num_stages=stages,
    )  # fmt: skip
