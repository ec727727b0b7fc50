def twcie(x, y):
    y.copy_(2 * x)
