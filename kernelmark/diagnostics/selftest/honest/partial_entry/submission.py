# The entry is a partial of a decorated function that another one made, with default arguments.
import functools

import torch


def checked(function):
    @functools.wraps(function)
    def wrapper(*arguments, **options):
        assert all(t.is_contiguous() for t in arguments)
        return function(*arguments, **options)

    return wrapper


def make(power):
    @checked
    def scale(x, y, /, factor=1, *, out_of_place=False):
        if out_of_place:
            y.copy_(x * factor**power)
        else:
            torch.mul(x, factor**power, out=y)

    return scale


twice = functools.partial(make(power=1), factor=2)
