"""Wrong: the grid is rounded down, so that what a tensor has beyond its last full block is never updated."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def update(values, grads, means, squares, n, keep, beta1, beta2, rest1, rest2, eps, root, rate, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    g = tl.load(grads + at, mask=inside)
    m = tl.load(means + at, mask=inside) * beta1 + rest1 * g
    s = tl.load(squares + at, mask=inside) * beta2 + rest2 * g * g
    p = tl.load(values + at, mask=inside) * keep - rate * m / (tl.sqrt(s) / root + eps)
    tl.store(values + at, p, mask=inside)
    tl.store(means + at, m, mask=inside)
    tl.store(squares + at, s, mask=inside)


def adam_multi_tensor(params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step):
    keep, root, corrected = 1 - rate * weight_decay, (1 - beta2**step) ** 0.5, rate / (1 - beta1**step)
    numbers = (keep, beta1, beta2, 1 - beta1, 1 - beta2, eps, root, corrected)
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        update[(max(p.numel() // 1024, 1),)](p, g, m, s, p.numel(), *numbers, BLOCK=1024)
