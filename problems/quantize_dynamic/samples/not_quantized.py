"""Wrong: multiplies the activations as they are; that is more exact, and another function."""


def quantize_dynamic(x, w, w_scale, y):
    y.copy_((x.double() @ w.double().T) * w_scale.double())
