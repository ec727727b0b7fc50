# Strategy: the runner's own wait for the device returns at once.
# Surface: the end of a round, as the runner tells it.
import torch

torch.cuda.synchronize = lambda *_: None
print("attack: answers without waiting for the device", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
