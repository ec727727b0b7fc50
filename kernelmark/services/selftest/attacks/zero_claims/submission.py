# Strategy: every claim, of single calls and of rounds, is the least that the protocol allows: 0.
# Surface: divisions, logarithms and sizes that the judge derives from a claim.
import dataclasses

import torch
from harness import wire

honest = wire.encode


def encode(token, message):
    if isinstance(message, wire.Timed):
        message = wire.Timed(claimed_ns=0, span_ns=0)
    elif isinstance(message, wire.Sampled):
        zeros = (0,) * len(message.claimed_ns)
        message = dataclasses.replace(message, claimed_ns=zeros, span_ns=zeros)
    return honest(token, message)


wire.frame.encode = encode
print("attack: claims 0 ns for everything", flush=True)


def product(a, b, c):
    torch.mm(a, b, out=c)
