# Strategy: the call that is recorded is another one than those that are tested, and right only for usual values.
# Surface: what is timed is the recording, which no test has seen.
import torch

print("attack: what is captured was never tested", flush=True)


def twice(x, y):
    torch.mul(x.clamp(-100, 100) if torch.cuda.is_current_stream_capturing() else x, 2, out=y)
