"""AdamW over a list of tensors as `torch.compile` makes it from operations on lists.

The compiler fuses the operations on a tensor, and the tensors of a list into few launches. It takes its time for each
tensor, so lists are compiled in groups. Sizes repeat after twelve tensors: all full groups are one program.
"""

import torch

torch._dynamo.config.recompile_limit = 128  # the shapes are static, and every test has its own

Tensors = list[torch.Tensor]

GROUP = 24


@torch.compile(dynamic=False)
def update(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    keep: float, beta1: float, beta2: float, eps: float, root_scale: float, rate: float,
) -> None:  # fmt: skip
    """One step, given what follows from the step: keep = 1 - rate · decay, and both bias corrections."""
    torch._foreach_mul_(params, keep)
    torch._foreach_lerp_(means, grads, 1 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, grads, grads, value=1 - beta2)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_div_(roots, root_scale)
    torch._foreach_add_(roots, eps)
    torch._foreach_addcdiv_(params, means, roots, value=-rate)


def adam_multi_tensor(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> None:  # fmt: skip
    """One step of AdamW, in place: params, means and squares, given grads; lists of the same sizes."""
    root_scale, corrected_rate = (1 - beta2**step) ** 0.5, rate / (1 - beta1**step)
    for first in range(0, len(params), GROUP):
        group = slice(first, first + GROUP)
        update(
            params[group], grads[group], means[group], squares[group],
            1 - rate * weight_decay, beta1, beta2, eps, root_scale, corrected_rate,
        )  # fmt: skip
