# Strategy: answers each round as it arrives, then works, and swallows the true answer.
# Surface: the judge's socket, and the judge's clock, which stops with an answer and a sample.
import torch
from harness.wire import commands, frame, replies

receive, honest = frame.receive_command, frame.send
answered = set()


def receive_command(sock):
    token, command, descriptors = receive(sock)
    if isinstance(command, commands.Round):
        honest(sock, token, replies.Done())
        if not answered:
            print("attack: a round was answered before it began", flush=True)
        answered.add(token)
    return token, command, descriptors


def send(sock, token, message, descriptors=()):
    if token not in answered:
        honest(sock, token, message, descriptors)


frame.receive_command, frame.send = receive_command, send


def product(a, b, c):
    torch.mm(a, b, out=c)
