def affine(x, shift, y, factor):
    y.copy_(x)
    y.mul_(factor)
    y.add_(shift)
