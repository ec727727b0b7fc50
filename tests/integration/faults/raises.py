def scale(x, y):
    inner(x)


def inner(x):
    raise ValueError(f"cannot scale {tuple(x.shape)}")
