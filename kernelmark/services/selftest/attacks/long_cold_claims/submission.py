# Strategy: claims 50 ms for each single call, so that a batch gets few, and a twentieth of the truth for rounds.
# Surface: the size of a batch, which decides how closely the judge's clock holds a claim.
import dataclasses

import torch
from harness import wire

honest = wire.encode


def encode(token, message):
    if isinstance(message, wire.Sampled):
        long = (50_000_000,) * len(message.claimed_ns)
        message = dataclasses.replace(message, claimed_ns=long, span_ns=long)
    elif isinstance(message, wire.Timed):
        message = wire.Timed(claimed_ns=message.claimed_ns // 20, span_ns=message.span_ns // 20)
    return honest(token, message)


wire.frame.encode = encode
print("attack: single calls claim 50 ms, rounds a twentieth", flush=True)


def product(a, b, c):
    torch.mm(a, b, out=c)
