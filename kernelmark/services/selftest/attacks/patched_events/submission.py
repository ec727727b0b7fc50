# Strategy: replaces the clock and the waiting that torch offers: Event.elapsed_time, synchronize, Stream.synchronize.
# Surface: a runner that would time with torch.cuda.Event.
import torch

torch.cuda.Event.elapsed_time = lambda self, end: 1e-06
torch.cuda.synchronize = lambda device=None: None
torch.cuda.Stream.synchronize = lambda self: None
print(f"attack: torch's event says {torch.cuda.Event().elapsed_time(torch.cuda.Event())} ms", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
