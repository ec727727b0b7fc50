"""Attention in Triton, after Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning".

A program holds one block of queries and walks over the keys with a running maximum and a running sum for each query;
what was summed so far is scaled when the maximum grows. Exponentials are to base 2, which the hardware has. Tensors are
read through descriptors: the copy engine fetches whole tiles, with zeros where a tile reaches beyond the sequence.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.4426950408889634


@triton.jit
def walk(
    o, top, total, q, k, v, group, first, last, queries, length, scale,
    MASK: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Take the keys from `first` to `last` in; MASK: some of them are after a query, or after the end."""
    for start in range(first, last, N):
        keys = k.load([group, start, 0]).reshape(N, SIZE)
        scores = tl.dot(q, keys.T, input_precision="ieee")
        if MASK:
            along = start + tl.arange(0, N)
            scores = tl.where((queries[:, None] >= along[None, :]) & (along < length)[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        # Scaled in one step with the subtraction: nothing is rounded while it is still large.
        weights = tl.exp2(tl.fma(scores, scale, -higher[:, None] * scale))
        shrink = tl.exp2((top - higher) * scale)
        total = total * shrink + tl.sum(weights, axis=1)
        values = v.load([group, start, 0]).reshape(N, SIZE)
        o = tl.dot(weights.to(values.dtype), values, o * shrink[:, None], input_precision="ieee")
        top = higher
    return o, top, total


@triton.jit
def block_kernel(
    q, k, v, o, heads, kv_heads, length, scale,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    # The longest blocks of a causal mask come first, so that no long one is left for the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1)
    group = head // heads * kv_heads + head % heads // (heads // kv_heads)
    queries = block * M + tl.arange(0, M)
    mine = q.load([head, block * M, 0]).reshape(M, SIZE)
    result = tl.zeros((M, SIZE), tl.float32)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    # Blocks of keys before all queries and before the end need no mask.
    whole = (block * M // N * N) if CAUSAL else (length // N * N)
    last = min((block + 1) * M, length) if CAUSAL else length
    result, top, total = walk(
        result, top, total, mine, k, v, group, 0, whole, queries, length, scale, False, N, SIZE
    )  # fmt: skip
    seen = queries if CAUSAL else tl.full((M,), 1 << 30, tl.int32)
    result, top, total = walk(
        result, top, total, mine, k, v, group, whole, last, seen, length, scale, True, N, SIZE
    )  # fmt: skip
    o.store([head, block * M, 0], (result / total[:, None]).to(o.dtype).reshape(1, M, SIZE))


def tiles(length: int, size: int, dtype: torch.dtype) -> tuple[int, int, int, int]:
    """Queries and keys of a tile, warps, and stages of the pipeline: what was fastest on an H200."""
    if dtype is torch.float32:
        return 32, 32, 4, 1  # on the ordinary cores: large tiles spill
    if length <= 256:
        return 64, 64, 4, 2
    if size <= 64:
        return 64, 128, 4, 2
    return (64, 64, 4, 3) if length <= 4096 else (128, 128, 8, 3)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, is_causal: int) -> None:
    """o = softmax(q · kᵀ / √size) · v: [batch, heads, length, size], of k and v with kv_heads heads."""
    batch, heads, length, size = q.shape
    m, n, warps, stages = tiles(length, size, q.dtype)
    by_m, by_n = [1, m, size], [1, n, size]
    tensors = [
        TensorDescriptor.from_tensor(tensor.view(-1, length, size), block)
        for tensor, block in ((q, by_m), (k, by_n), (v, by_n), (o, by_m))
    ]
    block_kernel[(triton.cdiv(length, m), batch * heads)](
        *tensors, heads, k.shape[1], length, size**-0.5 * LOG2_E,
        CAUSAL=bool(is_causal), M=m, N=n, SIZE=size, num_warps=warps, num_stages=stages,
    )  # fmt: skip
