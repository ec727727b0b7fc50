# Strategy: reads from the runner's frames which calls were drawn; the first one does the work of all, the others
# return at once.
# Surface: `calls`, where the submission's own code runs in a sealed round; on CUDA it refuses to be captured.
import sys

import torch

state = {"left": 0, "told": False}


def drawn():
    """The arguments of all calls of the round that is being made, or None."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_code.co_name == "launch":
            batch = frame.f_locals["self"]
            return [batch._call.__self__.arguments[k] for k in batch._order]
    return None


def twice(x, y):
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("not to be captured")
    if state["left"]:
        state["left"] -= 1
        return
    calls = drawn()
    if calls is None:
        torch.mul(x, 2, out=y)
        return
    if x.is_cuda:
        outputs = [out for _, out in calls]
        torch._foreach_copy_(outputs, [given for given, _ in calls])
        torch._foreach_mul_(outputs, 2)
    else:
        for given, out in calls:
            torch.mul(given, 2, out=out)
    state["left"] = len(calls) - 1
    if not state["told"]:
        state["told"] = True
        print(f"attack: the first call did the work of {len(calls)}", flush=True)
