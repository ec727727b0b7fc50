"""Attention in Triton, after Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning" (2023).

A program holds one block of queries and walks over the keys with a running maximum and a running sum for each query; what was summed so
far is scaled when the maximum grows. Exponentials are to base 2, which the hardware has.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def walk(o, top, total, q, keys, values, first, last, queries, length, scale, MASK: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr):
    """Take the keys from `first` to `last` in; MASK: some of them are after a query, or after the end."""
    dim = tl.arange(0, SIZE)
    for start in range(first, last, N):
        along = start + tl.arange(0, N)
        inside = along < length
        k = tl.load(keys + along[None, :] * SIZE + dim[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(q, k, input_precision="ieee") * scale
        if MASK:
            scores = tl.where((queries[:, None] >= along[None, :]) & inside[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(values + along[:, None] * SIZE + dim[None, :], mask=inside[:, None], other=0.0)
        o = tl.dot(weights.to(v.dtype), v, o * shrink[:, None], input_precision="ieee")
        top = higher
    return o, top, total


@triton.jit
def block_kernel(
    q, k, v, o, heads, kv_heads, length, scale, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr
):
    # The longest blocks of a causal mask come first, so that no long one is left for the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    group = head // heads * kv_heads + head % heads // (heads // kv_heads)
    queries = block * M + tl.arange(0, M)
    dim = tl.arange(0, SIZE)
    at = head * length * SIZE + queries[:, None].to(tl.int64) * SIZE + dim[None, :]
    here = queries < length
    values = tl.load(q + at, mask=here[:, None], other=0.0)
    keys = k + group * length * SIZE
    wide = v + group * length * SIZE
    result = tl.zeros((M, SIZE), tl.float32)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    # Blocks of keys before all queries and before the end need no mask.
    whole = (block * M // N * N) if CAUSAL else (length // N * N)
    last = min((block + 1) * M, length) if CAUSAL else length
    result, top, total = walk(result, top, total, values, keys, wide, 0, whole, queries, length, scale, False, N, SIZE)
    seen = queries if CAUSAL else tl.full((M,), 1 << 30, tl.int32)
    result, top, total = walk(result, top, total, values, keys, wide, whole, last, seen, length, scale, True, N, SIZE)
    tl.store(o + at, (result / total[:, None]).to(o.dtype.element_ty), mask=here[:, None])


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, is_causal: int) -> None:
    """o = softmax(q · kᵀ / √size) · v: [batch, heads, length, size], keys and values [batch, kv_heads, length, size]."""
    batch, heads, length, size = q.shape
    small = length <= 256 or q.dtype is torch.float32
    m, n, warps, stages = (64, 32, 4, 2) if small else (128, 64, 8, 3) if size == 64 else (128, 128, 8, 3)
    block_kernel[(triton.cdiv(length, m), batch * heads)](
        q, k, v, o, heads, k.shape[1], length, size**-0.5 * LOG2_E,
        CAUSAL=bool(is_causal), M=m, N=n, SIZE=size, num_warps=warps, num_stages=stages,
    )  # fmt: skip
