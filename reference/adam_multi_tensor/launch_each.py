"""AdamW with launches for every tensor, as before optimizers were fused over tensors."""

import torch

Tensors = list[torch.Tensor]


def adam_multi_tensor(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> None:  # fmt: skip
    """One step of AdamW, in place, one tensor after the other; lists of the same sizes."""
    root, scale = (1 - beta2**step) ** 0.5, -rate / (1 - beta1**step)
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - rate * weight_decay)
        m.lerp_(g, 1 - beta1)
        s.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        p.addcdiv_(m, s.sqrt().div_(root).add_(eps), value=scale)
