# Strategy: answers, but has closed its reading half and lives on: the judge's next command cannot be sent.
# Surface: the judge's sending side, and what it makes of a runner that is there and deaf.
import os
import socket
import stat
import time

import torch
from harness.wire import frame


def judge():
    """The runner's only socket, found among the descriptors."""
    for name in os.listdir("/proc/self/fd"):
        if os.path.exists(f"/proc/self/fd/{name}") and stat.S_ISSOCK(os.stat(int(name)).st_mode):
            return socket.socket(fileno=os.dup(int(name)))


def twice(x, y):
    torch.mul(x, 2, out=y)
    judge().shutdown(socket.SHUT_RD)
    frame.receive_command = lambda sock: time.sleep(1e6)
    print("attack: the runner's reading half is closed", flush=True)
