"""AdamW over a list of tensors in PyTorch: each operation once for all tensors, as `torch.optim.AdamW(foreach=True)`.

A few launches for each of eight operations instead of eight launches a tensor. But every operation reads and writes
whole lists: 20 passes over memory where 7 would do.
"""

import torch

Tensors = list[torch.Tensor]


def adam_multi_tensor(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> None:  # fmt: skip
    """One step of AdamW, in place: params, means and squares, given grads; lists of the same sizes."""
    torch._foreach_mul_(params, 1 - rate * weight_decay)
    torch._foreach_lerp_(means, grads, 1 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, grads, grads, value=1 - beta2)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_div_(roots, (1 - beta2**step) ** 0.5)
    torch._foreach_add_(roots, eps)
    torch._foreach_addcdiv_(params, means, roots, value=-rate / (1 - beta1**step))
