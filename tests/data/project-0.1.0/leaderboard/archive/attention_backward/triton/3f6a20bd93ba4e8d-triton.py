"""The gradients of attention in Triton, after Dao, "FlashAttention-2".

Three kernels: one finds for each query the logarithm of its sum and the inner product of its output with `dout`; one
gives each program a block of keys, over which it sums dk and dv; one gives each program a block of queries, over which
it sums dq. The weights are made anew in each of them, which is cheaper than to write them down. Exponentials are to
base 2, which the hardware has. Tensors are read through descriptors, with zeros where a tile reaches beyond the
sequence.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.4426950408889634


@triton.jit
def sums_kernel(
    dout, q, k, v, lses, deltas, heads, kv_heads, length, scale,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """The forward pass, of which two numbers a query are kept."""
    block, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    group = head // heads * kv_heads + head % heads // (heads // kv_heads)
    query = block * M + tl.arange(0, M)
    mine = q.load([head, block * M, 0]).reshape(M, SIZE)
    o = tl.zeros((M, SIZE), tl.float32)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    for start in range(0, min((block + 1) * M, length) if CAUSAL else length, N):
        key = start + tl.arange(0, N)
        keys = k.load([group, start, 0]).reshape(N, SIZE)
        scores = tl.dot(mine, keys.T, input_precision="ieee") * scale
        seen = (key < length)[None, :]
        if CAUSAL:
            seen = seen & (query[:, None] >= key[None, :])
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        values = v.load([group, start, 0]).reshape(N, SIZE)
        o = tl.dot(weights.to(values.dtype), values, o * shrink[:, None], input_precision="ieee")
        top = higher
    slope = dout.load([head, block * M, 0]).reshape(M, SIZE).to(tl.float32)
    at = head.to(tl.int64) * length + query
    tl.store(lses + at, top + tl.log2(total), mask=query < length)
    tl.store(deltas + at, tl.sum(slope * (o / total[:, None]), axis=1), mask=query < length)


@triton.jit
def keys_kernel(
    dout, q, k, v, dk, dv, lses, deltas, heads, kv_heads, length, scale, root,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """dk and dv of N keys: summed over the queries that see them, of all heads that share them.

    Scores are transposed, [N, M]: the weights then go from registers to the matrix units as they are.
    """
    block, group = tl.program_id(0), tl.program_id(1)
    key = block * N + tl.arange(0, N)
    keys = k.load([group, block * N, 0]).reshape(N, SIZE)
    values = v.load([group, block * N, 0]).reshape(N, SIZE)
    dkeys = tl.zeros((N, SIZE), tl.float32)
    dvalues = tl.zeros((N, SIZE), tl.float32)
    sharing = heads // kv_heads
    first = block * N // M * M if CAUSAL else 0
    for each in range(sharing):
        head = group // kv_heads * heads + group % kv_heads * sharing + each
        for start in range(first, length, M):
            query = start + tl.arange(0, M)
            queries = q.load([head, start, 0]).reshape(M, SIZE)
            slope = dout.load([head, start, 0]).reshape(M, SIZE)
            at = head.to(tl.int64) * length + query
            # Beyond the end the logarithm is infinite, and so the weight 0.
            lse = tl.load(lses + at, mask=query < length, other=float("inf"))
            delta = tl.load(deltas + at, mask=query < length, other=0.0)
            weights = tl.exp2(tl.dot(keys, queries.T, input_precision="ieee") * scale - lse[None, :])
            if CAUSAL:
                weights = tl.where(query[None, :] >= key[:, None], weights, 0.0)
            dvalues = tl.dot(weights.to(slope.dtype), slope, dvalues, input_precision="ieee")
            dscores = weights * (tl.dot(values, slope.T, input_precision="ieee") - delta[None, :])
            dkeys = tl.dot(dscores.to(queries.dtype), queries, dkeys, input_precision="ieee")
    dk.store([group, block * N, 0], (dkeys * root).to(dk.dtype).reshape(1, N, SIZE))
    dv.store([group, block * N, 0], dvalues.to(dv.dtype).reshape(1, N, SIZE))


@triton.jit
def queries_kernel(
    dout, q, k, v, dq, lses, deltas, heads, kv_heads, length, scale, root,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """dq of M queries, summed over the keys that they see."""
    block, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    group = head // heads * kv_heads + head % heads // (heads // kv_heads)
    query = block * M + tl.arange(0, M)
    queries = q.load([head, block * M, 0]).reshape(M, SIZE)
    slope = dout.load([head, block * M, 0]).reshape(M, SIZE)
    at = head.to(tl.int64) * length + query
    lse = tl.load(lses + at, mask=query < length, other=float("inf"))
    delta = tl.load(deltas + at, mask=query < length, other=0.0)
    result = tl.zeros((M, SIZE), tl.float32)
    for start in range(0, min((block + 1) * M, length) if CAUSAL else length, N):
        key = start + tl.arange(0, N)
        keys = k.load([group, start, 0]).reshape(N, SIZE)
        values = v.load([group, start, 0]).reshape(N, SIZE)
        weights = tl.exp2(tl.dot(queries, keys.T, input_precision="ieee") * scale - lse[:, None])
        seen = (query[:, None] >= key[None, :]) if CAUSAL else (key < length)[None, :]
        dscores = tl.dot(slope, values.T, input_precision="ieee") - delta[:, None]
        dscores = tl.where(seen, weights * dscores, 0.0)
        result = tl.dot(dscores.to(keys.dtype), keys, result, input_precision="ieee")
    dq.store([head, block * M, 0], (result * root).to(dq.dtype).reshape(1, M, SIZE))


def attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    dq: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor, is_causal: int,
) -> None:  # fmt: skip
    """dq [batch, heads, length, size], dk and dv [batch, kv_heads, length, size]."""
    batch, heads, length, size = q.shape
    kv_heads, root = k.shape[1], size**-0.5
    lses, deltas = torch.empty(2, batch, heads, length, dtype=torch.float32, device=q.device)
    # Queries and keys of a tile, warps, and stages of the pipeline, of each kernel: what was fastest on an H200.
    if q.dtype is torch.float32 or length <= 256:
        for_sums = for_keys = for_queries = (32, 32, 4, 1)
    elif size <= 64:
        for_sums, for_keys, for_queries = (64, 128, 4, 2), (32, 128, 4, 3), (128, 64, 4, 3)
    else:
        for_sums, for_keys, for_queries = (64, 64, 4, 3), (64, 64, 4, 2), (128, 64, 8, 3)

    def tiles(rows: int, *tensors: torch.Tensor) -> list[TensorDescriptor]:
        return [TensorDescriptor.from_tensor(tensor.view(-1, length, size), [1, rows, size]) for tensor in tensors]

    sizes = (heads, kv_heads, length, root * LOG2_E)
    m, n, warps, stages = for_sums
    sums_kernel[(triton.cdiv(length, m), batch * heads)](
        *tiles(m, dout, q), *tiles(n, k, v), lses, deltas, *sizes,
        CAUSAL=bool(is_causal), M=m, N=n, SIZE=size, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    m, n, warps, stages = for_keys
    keys_kernel[(triton.cdiv(length, n), batch * kv_heads)](
        *tiles(m, dout, q), *tiles(n, k, v, dk, dv), lses, deltas, *sizes, root,
        CAUSAL=bool(is_causal), M=m, N=n, SIZE=size, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    m, n, warps, stages = for_queries
    queries_kernel[(triton.cdiv(length, m), batch * heads)](
        *tiles(m, dout, q), *tiles(n, k, v), *tiles(m, dq), lses, deltas, *sizes, root,
        CAUSAL=bool(is_causal), M=m, N=n, SIZE=size, num_warps=warps, num_stages=stages,
    )  # fmt: skip
