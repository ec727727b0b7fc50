# Strategy: works on a stream of its own that nobody joins; one element on the given stream is the decoy for events.
# Surface: the time between events on the runner's stream, in single calls and in a batch.
import torch

SIDE = torch.cuda.Stream()
told = False


def twice(x, y):
    global told
    with torch.cuda.stream(SIDE):
        torch.mul(x, 2, out=y)
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("no capture: plain calls are what this attack is for")
    torch.mul(x[:1], 2, out=y[:1])
    if not told and x.numel() > 65536:
        told = True
        print("attack: launched on a stream of its own, not joined", flush=True)
