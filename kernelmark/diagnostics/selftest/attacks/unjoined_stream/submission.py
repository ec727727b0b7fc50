# Strategy: leaves the work on a stream of its own, and returns.
# Surface: a call whose work is not waited for seems to take no time.
import torch

print("attack: nobody waits for this stream", flush=True)
own = torch.cuda.Stream()


def twice(x, y):
    own.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(own):
        torch.mul(x, 2, out=y)
