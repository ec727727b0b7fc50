def scale(x, y):
    x.mul_(2)
    y.copy_(x)
