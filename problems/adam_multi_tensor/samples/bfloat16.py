"""Wrong: the moments are computed in bfloat16, as if they were kept in it."""


def adam_multi_tensor(params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step):
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        low = g.bfloat16()
        m.copy_(m.bfloat16() * beta1 + low * (1 - beta1))
        s.copy_(s.bfloat16() * beta2 + low * low * (1 - beta2))
        root = s.sqrt() / (1 - beta2**step) ** 0.5
        p.mul_(1 - rate * weight_decay).addcdiv_(m, root + eps, value=-rate / (1 - beta1**step))
