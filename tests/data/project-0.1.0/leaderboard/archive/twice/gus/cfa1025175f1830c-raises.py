def twice(x, y):
    raise ValueError(f"cannot double {tuple(x.shape)}")
