# Strategy: a reply in which every field stands twice: whoever checks the first one and uses the second is deceived.
# Surface: the decoder of frames, which sees whatever a replaced runner sends.
import torch
from harness.wire import frame, replies

honest = frame.send


def send(sock, token, message, descriptors=()):
    if not isinstance(message, replies.Done):
        return honest(sock, token, message, descriptors)
    print("attack: a frame with two tokens and two kinds", flush=True)
    sock.sendall(b'{"token":0,"token":%d,"kind":"Failed","kind":"Done"}' % token)


frame.send = send


def twice(x, y):
    torch.mul(x, 2, out=y)
