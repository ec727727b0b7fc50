# Strategy: is slow until the number of calls a round has been decided, so that a round is short; then answers faster
# than an honest runner, by asking for commands without sleeping, to undercut the overhead that is taken off.
# Surface: the size of a round, and an overhead that was measured with an honest runner.
import time

import torch
from harness.wire import frame

SLOW_S, SLOW_CALLS = 0.05, 3  # of practice, and of both rounds that decide
receive, calls = frame.receive_command, []


def receive_command(sock):
    sock.setblocking(False)
    try:
        while True:
            try:
                return receive(sock)
            except BlockingIOError:
                pass
    finally:
        sock.setblocking(True)


frame.receive_command = receive_command


def twice(x, y):
    torch.mul(x, 2, out=y)
    if x.numel() == 1_000_000 and len(calls) < SLOW_CALLS:
        calls.append(time.sleep(SLOW_S))
        if len(calls) == SLOW_CALLS:
            print(f"attack: slow for {SLOW_CALLS} calls, and never asleep", flush=True)
