"""Wrong: the decay is added to the gradient, which is Adam with an L2 penalty, and not AdamW."""


def adam_multi_tensor(params, grads, means, squares, rate, beta1, beta2, eps, weight_decay, step):
    for p, g, m, s in zip(params, grads, means, squares, strict=True):
        penalised = g + weight_decay * p
        m.lerp_(penalised, 1 - beta1)
        s.mul_(beta2).addcmul_(penalised, penalised, value=1 - beta2)
        root = s.sqrt() / (1 - beta2**step) ** 0.5
        p.addcdiv_(m, root + eps, value=-rate / (1 - beta1**step))
