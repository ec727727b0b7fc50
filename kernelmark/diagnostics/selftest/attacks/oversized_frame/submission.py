# Strategy: a right answer with its right token, padded to one byte more than a frame may have.
# Surface: the buffer into which the judge receives.
import torch
from harness.wire import frame, replies

honest = frame.send


def send(sock, token, message, descriptors=()):
    if not isinstance(message, replies.Done):
        return honest(sock, token, message, descriptors)
    packet = frame.encode(token, message).ljust(frame.MAX_FRAME_BYTES + 1)
    print(f"attack: a frame of {len(packet)} bytes", flush=True)
    sock.sendall(packet)


frame.send = send


def twice(x, y):
    torch.mul(x, 2, out=y)
