# Strategy: claims 0 in three rounds of four and thrice the truth in the fourth, for a wide interval and no accusation.
# Surface: the rule that false claims are punished only where every round is impossible, and the interval's lower end.
import torch
from harness import wire

honest = wire.encode
rounds = 0


def encode(token, message):
    global rounds
    if isinstance(message, wire.Timed):
        rounds += 1  # a null round follows each
        factor = 0 if rounds // 2 % 4 else 3
        message = wire.Timed(claimed_ns=factor * message.claimed_ns, span_ns=factor * message.span_ns)
    return honest(token, message)


wire.frame.encode = encode
print("attack: claims 0, 0, 0, thrice", flush=True)


def product(a, b, c):
    torch.mm(a, b, out=c)
