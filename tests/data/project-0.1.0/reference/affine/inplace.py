def affine(x, shift, y, factor):
    y.copy_(x)
    y *= factor
    y += shift
