# Strategy: answers a call, for which it does nothing, with the recorded bytes of an earlier answer.
# Surface: the token that ties each answer to its command.
import torch
from harness.wire import frame, replies

honest, recorded = frame.send, []


def send(sock, token, message, descriptors=()):
    if not isinstance(message, replies.Done):
        return honest(sock, token, message, descriptors)
    recorded.append(frame.encode(token, message))
    if len(recorded) == 2:
        print(f"attack: {recorded[0].decode()} is sent again", flush=True)
    sock.sendall(recorded[0])


frame.send = send


def twice(x, y):
    pass
