"""The definition of one step of AdamW over lists of tensors."""

import torch

Tensors = list[torch.Tensor]


def reference(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> tuple[Tensors, Tensors, Tensors]:  # fmt: skip
    """One step, the `step`-th, counted from 1: params, means and squares are changed in place, and returned.

    The four lists have as many tensors, of the same sizes. In the order of `torch.optim.AdamW`: the decay does not go
    through the gradient, both moments are corrected for their start from 0, and eps is added after the root.
    """
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - rate * weight_decay)
        m.lerp_(g, 1 - beta1)
        s.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = s.sqrt() / (1 - beta2**step) ** 0.5
        p.addcdiv_(m, root + eps, value=-rate / (1 - beta1**step))
    return params, means, squares
