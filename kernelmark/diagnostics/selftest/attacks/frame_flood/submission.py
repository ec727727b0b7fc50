# Strategy: threads send well-formed answers without end, as fast as the judge takes them.
# Surface: the judge's one thread, which waits for the socket, the output and the clock.
import gc
import socket
import threading

import torch
from harness.wire import frame, replies

[JUDGE] = [found for found in gc.get_objects() if type(found) is socket.socket]


def flood(first):
    while True:
        for token in range(first, first + 1000):
            frame.send(JUDGE, token, replies.Done())


print("attack: a flood of frames", flush=True)
for k in range(4):
    threading.Thread(target=flood, args=(1000 * k,), daemon=True).start()


def twice(x, y):
    torch.mul(x, 2, out=y)
