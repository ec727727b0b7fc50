"""Cross entropy and its gradient in Triton: a program a row, which reads it twice and writes it once.

The first pass finds the row's maximum and the sum of its powers together; the loss follows from them. The second pass
goes backwards, since what was read last is still in L2, and writes the gradient.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

BLOCKS = (64, 1024, 4096, 16384)  # few, since each is compiled by itself


@triton.jit
def row_kernel(logits, target, upstream, loss, gradient, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * classes
    gradient += row * classes
    # Each lane keeps the maximum and the sum of its own classes; they are combined once, at the end.
    tops = tl.full((BLOCK,), float("-inf"), tl.float32)
    totals = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < classes, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(tops, values)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        totals = totals * tl.exp(tops - shift) + tl.exp(values - shift)
        tops = higher
    top = tl.max(tops, axis=0)
    shift = tl.where(top == float("-inf"), 0.0, top)
    total = tl.sum(totals * tl.exp(tops - shift), axis=0)
    right = tl.load(target + row)
    row_loss = tl.log(total) - (tl.load(logits + right).to(tl.float32) - shift)
    tl.store(loss + row, row_loss.to(loss.dtype.element_ty))
    scale = tl.load(upstream + row).to(tl.float32)
    last = (classes - 1) // BLOCK * BLOCK
    for back in range(0, classes, BLOCK):
        at = last - back + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < classes, other=float("-inf")).to(tl.float32)
        shares = tl.exp(values - shift) / total - tl.where(at == right, 1.0, 0.0)
        tl.store(gradient + at, (shares * scale).to(gradient.dtype.element_ty), mask=at < classes)


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, upstream: torch.Tensor, loss: torch.Tensor, gradient: torch.Tensor
) -> None:
    """[rows, classes], [rows] int64, [rows] to the loss of each row, and the gradient of Σ upstream · loss."""
    rows, classes = logits.shape
    block = next((size for size in BLOCKS if classes <= size), BLOCKS[-1])
    warps = min(max(block // 512, 1), 32)
    row_kernel[(rows,)](logits, target, upstream, loss, gradient, classes, BLOCK=block, num_warps=warps)
