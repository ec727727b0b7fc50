# Strategy: the recorded call copies its first answers from the host, which has them from the call before it.
# Surface: small copies from the host are recorded with what they copy.
import torch

COUNT = 4096
pinned, told = torch.empty(COUNT, pin_memory=True), []


def twice(x, y):
    torch.mul(x, 2, out=y)
    count = min(COUNT, x.numel())
    if not torch.cuda.is_current_stream_capturing():
        pinned[:count].copy_(y[:count])
        return
    if not told:
        told.append(print("attack: the recorded copy holds answers", flush=True))
    y[:count].copy_(pinned[:count].to(x.device, non_blocking=True))
