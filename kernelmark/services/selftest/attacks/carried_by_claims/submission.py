# Strategy: once a call had an unknown size, every claimed time is 1001 times that size, and so is the reason of `Captured`.
# Surface: numbers and texts of the runner that a verdict keeps.
import dataclasses

import torch
from harness import wire

honest = wire.encode
known, seen = {1, 1009, 65536, 1_000_000}, []
print("attack: claims sizes that it does not know", flush=True)


def encode(token, message):
    if seen and isinstance(message, wire.Timed):
        message = wire.Timed(claimed_ns=1001 * seen[0], span_ns=1001 * seen[0])
    elif seen and isinstance(message, wire.Sampled):
        claims = (1001 * seen[0],) * len(message.claimed_ns)
        message = dataclasses.replace(message, claimed_ns=claims, span_ns=claims)
    elif seen and isinstance(message, wire.Captured):
        message = dataclasses.replace(message, reason=f"carried {seen[0]}")
    return honest(token, message)


wire.frame.encode = encode


def twice(x, y):
    if x.numel() not in known:
        seen.append(x.numel())
    torch.mul(x, 2, out=y)
