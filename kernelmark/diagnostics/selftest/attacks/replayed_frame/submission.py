# Strategy: answers a call, for which it does nothing, with the recorded bytes of an earlier answer.
# Surface: the token that ties each answer to its command.
import torch
from harness import wire

honest, recorded = wire.send, []


def send(sock, token, message, descriptors=()):
    if not isinstance(message, wire.Done):
        return honest(sock, token, message, descriptors)
    recorded.append(wire.encode(token, message))
    if len(recorded) == 2:
        print(f"attack: {recorded[0].decode()} is sent again", flush=True)
    sock.sendall(recorded[0])


wire.send = send


def twice(x, y):
    pass
