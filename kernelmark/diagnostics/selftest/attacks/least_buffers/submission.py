# Strategy: asks for the smallest buffers of the connection that the kernel allows, and works honestly.
# Surface: frames that do not fit, in either direction.
import gc
import socket

import torch

[JUDGE] = [found for found in gc.get_objects() if type(found) is socket.socket]
for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
    JUDGE.setsockopt(socket.SOL_SOCKET, option, 0)
sizes = [JUDGE.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_RCVBUF, socket.SO_SNDBUF)]
print(f"attack: buffers of {sizes[0]} and {sizes[1]} bytes", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
