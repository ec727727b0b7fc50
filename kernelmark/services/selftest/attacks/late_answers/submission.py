# Strategy: does the work, and holds each answer of the timing back for 12 s: each is in time by itself.
# Surface: the deadlines of the cold calls, the sealed rounds and the null rounds, which together have 30 s.
import time

import torch
from harness import wire

HELD_BACK_S = 12
send = wire.send
timed = False


def late(sock, token, message, descriptors=()):
    global timed
    if not timed and isinstance(message, wire.Sampled):
        timed = True
        print("attack: every answer from now on is held back", flush=True)
    if timed:
        time.sleep(HELD_BACK_S)
    send(sock, token, message, descriptors)


wire.send = late


def twice(x, y):
    torch.mul(x, 2, out=y)
