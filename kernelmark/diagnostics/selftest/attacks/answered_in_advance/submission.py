# Strategy: puts the answer to the next round behind the answer to each, before there is such a round: the judge's clock
# would find it waiting and stop.
# Surface: the order of frames; the tokens of commands that have not been given yet.
import torch
from harness.wire import commands, frame, replies

receive, honest, told = frame.receive_command, frame.send, []
rounds = set()


def receive_command(sock):
    token, command, descriptors = receive(sock)
    if isinstance(command, commands.Round):
        rounds.add(token)
    return token, command, descriptors


def send(sock, token, message, descriptors=()):
    honest(sock, token, message, descriptors)
    if token in rounds:
        if not told:
            told.append(print("attack: the next round is answered in advance, with this one's token", flush=True))
        honest(sock, token, replies.Done())


frame.receive_command, frame.send = receive_command, send


def twice(x, y):
    torch.mul(x, 2, out=y)
