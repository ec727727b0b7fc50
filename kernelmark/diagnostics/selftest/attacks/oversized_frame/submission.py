# Strategy: a right answer with its right token, padded to one byte more than a frame may have.
# Surface: the buffer into which the judge receives.
import torch
from harness import wire

honest = wire.send


def send(sock, token, message, descriptors=()):
    if not isinstance(message, wire.Done):
        return honest(sock, token, message, descriptors)
    frame = wire.encode(token, message).ljust(wire.MAX_FRAME_BYTES + 1)
    print(f"attack: a frame of {len(frame)} bytes", flush=True)
    sock.sendall(frame)


wire.send = send


def twice(x, y):
    torch.mul(x, 2, out=y)
