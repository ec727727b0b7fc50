"""The gradients of attention in Triton, after Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning" (2023).

Three kernels: one finds for each query the logarithm of its sum and the inner product of its output with `dout`; one gives each program a
block of keys, over which it sums dk and dv; one gives each program a block of queries, over which it sums dq. The weights are made anew
in each of them. Exponentials are to base 2, which the hardware has.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def rows_of(base, row, length, SIZE: tl.constexpr):
    """[rows, SIZE] of a matrix whose rows end at `length`."""
    at = row[:, None].to(tl.int64) * SIZE + tl.arange(0, SIZE)[None, :]
    return tl.load(base + at, mask=(row < length)[:, None], other=0.0)


@triton.jit
def weights_of(scores, query, key, lse, length, CAUSAL: tl.constexpr):
    """The softmax's weights from scores to base 2; what a query may not see has none."""
    seen = (key < length)[None, :] & (query < length)[:, None]
    if CAUSAL:
        seen = seen & (query[:, None] >= key[None, :])
    return tl.where(seen, tl.exp2(scores - lse[:, None]), 0.0)


@triton.jit
def sums_kernel(
    dout, q, k, v, lses, deltas, heads, kv_heads, length, scale,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    block, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    own = head * length * SIZE
    shared = (head // heads * kv_heads + head % heads // (heads // kv_heads)) * length * SIZE
    query = block * M + tl.arange(0, M)
    values = rows_of(q + own, query, length, SIZE)
    o = tl.zeros((M, SIZE), tl.float32)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    for start in range(0, min((block + 1) * M, length) if CAUSAL else length, N):
        key = start + tl.arange(0, N)
        scores = tl.dot(values, tl.trans(rows_of(k + shared, key, length, SIZE)), input_precision="ieee") * scale
        seen = (key < length)[None, :]
        if CAUSAL:
            seen = seen & (query[:, None] >= key[None, :])
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        seen_values = rows_of(v + shared, key, length, SIZE)
        o = tl.dot(weights.to(seen_values.dtype), seen_values, o * shrink[:, None], input_precision="ieee")
        top = higher
    slope = rows_of(dout + own, query, length, SIZE).to(tl.float32)
    tl.store(lses + head * length + query, top + tl.log2(total), mask=query < length)
    tl.store(deltas + head * length + query, tl.sum(slope * (o / total[:, None]), axis=1), mask=query < length)


@triton.jit
def keys_kernel(
    dout, q, k, v, dk, dv, lses, deltas, heads, kv_heads, length, scale, root,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    block, group = tl.program_id(0), tl.program_id(1).to(tl.int64)
    own = group * length * SIZE
    key = block * N + tl.arange(0, N)
    keys, values = rows_of(k + own, key, length, SIZE), rows_of(v + own, key, length, SIZE)
    dkeys = tl.zeros((N, SIZE), tl.float32)
    dvalues = tl.zeros((N, SIZE), tl.float32)
    sharing = heads // kv_heads
    first = block * N // M * M if CAUSAL else 0
    for each in range(0, sharing):
        head = group // kv_heads * heads + group % kv_heads * sharing + each
        for start in range(first, length, M):
            query = start + tl.arange(0, M)
            queries = rows_of(q + head * length * SIZE, query, length, SIZE)
            slope = rows_of(dout + head * length * SIZE, query, length, SIZE)
            lse = tl.load(lses + head * length + query, mask=query < length, other=0.0)
            delta = tl.load(deltas + head * length + query, mask=query < length, other=0.0)
            scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
            weights = weights_of(scores, query, key, lse, length, CAUSAL)
            dvalues = tl.dot(tl.trans(weights.to(slope.dtype)), slope, dvalues, input_precision="ieee")
            dscores = weights * (tl.dot(slope, tl.trans(values), input_precision="ieee") - delta[:, None]) * root
            dkeys = tl.dot(tl.trans(dscores.to(queries.dtype)), queries, dkeys, input_precision="ieee")
    at = own + key[:, None].to(tl.int64) * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(dk + at, dkeys.to(dk.dtype.element_ty), mask=(key < length)[:, None])
    tl.store(dv + at, dvalues.to(dv.dtype.element_ty), mask=(key < length)[:, None])


@triton.jit
def queries_kernel(
    dout, q, k, v, dq, lses, deltas, heads, kv_heads, length, scale, root,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    block, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1).to(tl.int64)
    own = head * length * SIZE
    shared = (head // heads * kv_heads + head % heads // (heads // kv_heads)) * length * SIZE
    query = block * M + tl.arange(0, M)
    queries, slope = rows_of(q + own, query, length, SIZE), rows_of(dout + own, query, length, SIZE)
    lse = tl.load(lses + head * length + query, mask=query < length, other=0.0)
    delta = tl.load(deltas + head * length + query, mask=query < length, other=0.0)
    result = tl.zeros((M, SIZE), tl.float32)
    for start in range(0, min((block + 1) * M, length) if CAUSAL else length, N):
        key = start + tl.arange(0, N)
        keys, values = rows_of(k + shared, key, length, SIZE), rows_of(v + shared, key, length, SIZE)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        weights = weights_of(scores, query, key, lse, length, CAUSAL)
        dscores = weights * (tl.dot(slope, tl.trans(values), input_precision="ieee") - delta[:, None]) * root
        result = tl.dot(dscores.to(keys.dtype), keys, result, input_precision="ieee")
    at = own + query[:, None].to(tl.int64) * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(dq + at, result.to(dq.dtype.element_ty), mask=(query < length)[:, None])


def attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    dq: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor, is_causal: int,
) -> None:  # fmt: skip
    """dq [batch, heads, length, size], dk and dv [batch, kv_heads, length, size]."""
    batch, heads, length, size = q.shape
    kv_heads, root = k.shape[1], size**-0.5
    lses, deltas = torch.empty(2, batch, heads, length, dtype=torch.float32, device=q.device)
    small = q.dtype is torch.float32 or length <= 256
    m, n, warps, stages = (32, 32, 4, 1) if small else (64, 128, 8, 2)
    options = {"CAUSAL": bool(is_causal), "SIZE": size, "num_warps": warps, "num_stages": stages}
    sizes = (heads, kv_heads, length, root * LOG2_E)
    by_query, by_key = (triton.cdiv(length, 2 * m), batch * heads), (triton.cdiv(length, n), batch * kv_heads)
    sums_kernel[by_query](dout, q, k, v, lses, deltas, *sizes, M=2 * m, N=m, **options)
    keys_kernel[by_key](dout, q, k, v, dk, dv, lses, deltas, *sizes, root, M=m, N=n, **options)
    queries_kernel[by_query](dout, q, k, v, dq, lses, deltas, *sizes, root, M=2 * m, N=m, **options)
