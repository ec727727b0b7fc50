"""Wrong: the moments are not corrected for their start from 0."""

import torch


def adam_multi_tensor(params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step):
    torch._foreach_mul_(params, 1 - rate * weight_decay)
    torch._foreach_lerp_(means, grads, 1 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, grads, grads, value=1 - beta2)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, eps)
    torch._foreach_addcdiv_(params, means, roots, value=-rate)
