# Strategy: looks at commands without taking them (MSG_PEEK), obeys and answers them, so that the judge's socket fills.
# Surface: the judge's sending side, which would wait, or fail, when there is no room.
import array
import gc
import socket

import torch
from harness.wire import commands, frame

SO_PEEK_OFF = 42  # from where to look: each look finds the next command
[JUDGE] = [found for found in gc.get_objects() if type(found) is socket.socket]
JUDGE.setsockopt(socket.SOL_SOCKET, SO_PEEK_OFF, 0)
print("attack: commands are looked at, and stay where they are", flush=True)


def peeked(sock):
    packet, attached, _, _ = sock.recvmsg(frame.MAX_FRAME_BYTES, socket.CMSG_SPACE(8), socket.MSG_PEEK)
    if not packet:
        raise frame.Closed
    descriptors = array.array("i")
    for _, _, data in attached:
        descriptors.frombytes(data)
    return *frame.decode(packet, commands.COMMANDS), list(descriptors)


frame.receive_command = peeked


def twice(x, y):
    torch.mul(x, 2, out=y)
