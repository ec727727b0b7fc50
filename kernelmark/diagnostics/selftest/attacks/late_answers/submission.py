# Strategy: does the work, and holds each answer of the timing back for 12 s: each is in time by itself.
# Surface: the deadlines of the answers of a benchmark case, which together have 30 s.
import time

import torch
from harness.wire import commands, frame

HELD_BACK_S = 12
receive, send = frame.receive_command, frame.send
timed = False


def receive_command(sock):
    global timed
    token, command, descriptors = receive(sock)
    if not timed and isinstance(command, commands.MapOutputs):
        timed = True
        print("attack: every answer from now on is held back", flush=True)
    return token, command, descriptors


def late(sock, token, message, descriptors=()):
    if timed:
        time.sleep(HELD_BACK_S)
    send(sock, token, message, descriptors)


frame.receive_command, frame.send = receive_command, late


def twice(x, y):
    torch.mul(x, 2, out=y)
