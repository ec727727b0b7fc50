"""AdamW by PyTorch's fused kernel, launched once a tensor: what passing many tensors to a launch replaces."""

import torch

Tensors = list[torch.Tensor]

# The kernel reads the step from the device, so that a captured graph can count on. One tensor serves all members.
steps: dict[tuple[torch.device, int], torch.Tensor] = {}


def adam_multi_tensor(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> None:  # fmt: skip
    """One step of AdamW, in place, one tensor after the other; lists of the same sizes."""
    device = params[0].device
    if (device, step) not in steps:
        steps[device, step] = torch.tensor(float(step), device=device)
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        torch._fused_adamw_(
            [p], [g], [m], [s], [], [steps[device, step]],
            lr=rate, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps, amsgrad=False, maximize=False,
        )  # fmt: skip
