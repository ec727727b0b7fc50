"""Wrong: eps is added to the square, and the root of the sum is taken; only the first step shows it."""


def adam_multi_tensor(params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step):
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - rate * weight_decay)
        m.lerp_(g, 1 - beta1)
        s.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = (s / (1 - beta2**step) + eps * eps).sqrt()
        p.addcdiv_(m, root, value=-rate / (1 - beta1**step))
