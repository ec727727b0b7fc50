# Strategy: claims -1 ns for a round: a negative time, so that the batch ends before it began.
# Surface: the arithmetic that holds claims against the judge's clock.
import torch
from harness import wire

honest = wire.encode


def encode(token, message):
    if not isinstance(message, wire.Timed):
        return honest(token, message)
    print("attack: claims -1 ns", flush=True)
    return b'{"token":%d,"kind":"Timed","claimed_ns":-1,"span_ns":-1}' % token


wire.frame.encode = encode


def twice(x, y):
    torch.mul(x, 2, out=y)
