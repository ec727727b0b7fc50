"""AdamW over a list of tensors by PyTorch's own kernel, that of `torch.optim.AdamW(fused=True)`: the time to beat.

It passes the pointers of some tensors, and which block works on which chunk of 65536 elements, as arguments of a
launch, and launches until all tensors are done.
"""

import torch

Tensors = list[torch.Tensor]

# The kernel reads the step from the device, so that a captured graph can count on. One tensor serves all members.
steps: dict[tuple[torch.device, int], torch.Tensor] = {}


def adam_multi_tensor(
    params: Tensors, grads: Tensors, means: Tensors, squares: Tensors,
    rate: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int,
) -> None:  # fmt: skip
    """One step of AdamW, in place: params, means and squares, given grads; lists of the same sizes."""
    device = params[0].device
    if (device, step) not in steps:
        steps[device, step] = torch.tensor(float(step), device=device)
    torch._fused_adamw_(
        params, grads, means, squares, [], [steps[device, step]] * len(params),
        lr=rate, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps, amsgrad=False, maximize=False,
    )  # fmt: skip
