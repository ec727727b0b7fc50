def affine(x, shift, y, factor):
    y.copy_(factor * x + shift)
