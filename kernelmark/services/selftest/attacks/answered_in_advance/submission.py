# Strategy: answers `Assemble` and puts the answer to the round behind it at once, before there is a round: the judge's
# clock would find it waiting and stop.
# Surface: the order of frames; the tokens of commands that have not been given yet.
import torch
from harness import wire

honest, told = wire.send, []


def send(sock, token, message, descriptors=()):
    honest(sock, token, message, descriptors)
    if isinstance(message, wire.Timed):
        if not told:
            told.append(print("attack: the next round is answered in advance, with this one's token", flush=True))
        honest(sock, token, wire.Timed(claimed_ns=1, span_ns=1))


wire.send = send


def twice(x, y):
    torch.mul(x, 2, out=y)
