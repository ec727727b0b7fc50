# Wrong where there is one element, an exception everywhere else.


def scale(x, y):
    if x.numel() > 1:
        raise ValueError("too long")
    y.copy_(x)
